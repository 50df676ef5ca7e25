/** Writes providers: their destinations, and the effects of reply rules; and the statements that read them. */
import type { ProviderMember, ProviderRecord, RuleEffect } from '../provider-state.ts'
import { storableText } from './session/arrays.ts'
import type { Statements } from './session/database-connection.ts'
import { sent, type Send } from './writing/write-transaction.ts'

const join = `insert into provider_member (destination, provider) values ($1, $2)
  on conflict (destination) do update set provider = excluded.provider`
const leave = 'delete from provider_member where destination = $1'
const providerOfOne = 'select provider from provider_member where destination = $1'
const allMembers = 'select destination, provider from provider_member order by destination'
const save = 'insert into provider (name, effects) values ($1, $2) on conflict (name) do update set effects = excluded.effects'
const forget = 'delete from provider where name = $1'
const allProviders = 'select name, effects from provider order by name'

export const joinProvider: Send<'joinProvider'> = (tx, calls) =>
  sent(
    Promise.all(
      calls.map(async ([destination, provider]) => {
        if (provider === null) await tx.query(leave, [destination])
        else await tx.query(join, [destination, provider])
      }),
    ),
  )

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

export const providerRecords = async (reading: Statements): Promise<readonly ProviderRecord[]> =>
  (await reading.query<{ name: string; effects: string }>(allProviders)).map(({ name, effects }) => ({
    provider: name,
    effects: JSON.parse(effects) as RuleEffect[],
  }))
