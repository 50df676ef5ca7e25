/** Writes the effects of reply rules on providers, and reads them and the destinations of providers. */
import type { ProviderMember, ProviderRecord, RuleEffect } from '../provider-state.ts'
import type { DestinationName } from '../../mail/message.ts'
import { shardUnder } from '../membership/shard-keys.ts'
import type { Shard } from '../membership/shards.ts'
import { storableText } from './session/arrays.ts'
import type { Statements } from './session/database-connection.ts'
import { sent, type Send } from './writing/write-transaction.ts'

const providerOfOne = 'select provider from provider_member where destination = $1 and provider is not null'
const allMembers = 'select destination, provider from provider_member where provider is not null order by destination'
const save = 'insert into provider (name, effects) values ($1, $2) on conflict (name) do update set effects = excluded.effects'
const forget = 'delete from provider where name = $1'
const allProviders = 'select name, effects from provider order by name'

export const saveProvider: Send<'saveProvider'> = (tx, calls) =>
  sent(
    Promise.all(
      calls.map(async ([{ provider, effects }]) => {
        if (effects.length === 0) await tx.query(forget, [provider])
        else await tx.query(save, [provider, storableText(JSON.stringify(effects))])
      }),
    ),
  )

export const providerMembers = (reading: Statements): Promise<readonly ProviderMember[]> => reading.query<ProviderMember>(allMembers)

export const providerOf = async (reading: Statements, destination: string): Promise<string | null> =>
  (await reading.query<{ provider: string }>(providerOfOne, [destination]))[0]?.provider ?? null

/** Shard of a destination, as its mail in the tables has it. */
export const shardAt = async (reading: Statements, destination: DestinationName): Promise<Shard> =>
  shardUnder(destination, await providerOf(reading, destination))

export const providerRecords = async (reading: Statements): Promise<readonly ProviderRecord[]> =>
  (await reading.query<{ name: string; effects: string }>(allProviders)).map(({ name, effects }) => ({
    provider: name,
    effects: JSON.parse(effects) as RuleEffect[],
  }))
