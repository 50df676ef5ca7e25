/** Writes the effects of reply rules on providers, and reads them and the destinations of providers. */
import type { ProviderMember, ProviderRecord, RuleEffect } from '../provider-state.ts'
import { nameOfProvider } from '../../config/provider-directory.ts'
import type { OwnerId } from '../../mail/message.ts'
import type { Shard } from '../membership/shards.ts'
import { storableText } from './session/arrays.ts'
import type { Statements } from './session/database-connection.ts'
import { isForeign } from './writing/queries.ts'
import { sent, type Send } from './writing/write-transaction.ts'

const providerOfOne = 'select provider from provider_member where destination = $1 and provider is not null'
const allMembers = 'select destination, provider from provider_member where provider is not null order by destination'

const TOLD = `
  told as (insert into arrival (shard, kind, record) select $2::smallint, 'providers', $3 where ${isForeign('$2::smallint')} returning shard)
  select shard from told`
const save = `
  with saved as (insert into provider (name, effects) values ($4, $5) on conflict (name) do update set effects = excluded.effects), ${TOLD}`
const forget = `with gone as (delete from provider where name = $4), ${TOLD}`

const allProviders = 'select name, effects from provider order by name'

export const providerWriter =
  (node: OwnerId): Send<'saveProvider'> =>
  (tx, calls) =>
    sent(
      Promise.all(
        calls.map(async ([record]) => {
          const { provider, effects } = record
          const place = [node, tx.shardOf(nameOfProvider(provider)), storableText(JSON.stringify(record)), provider]
          const isOver = effects.length === 0
          const saved = tx.query<{ shard: Shard }>(
            isOver ? forget : save,
            isOver ? place : [...place, storableText(JSON.stringify(effects))],
          )
          tx.told(await saved)
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
