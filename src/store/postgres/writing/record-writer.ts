/** Writes small records. */
import { nameOfProvider } from '../../../config/provider-directory.ts'
import type { OwnerId } from '../../../mail/message.ts'
import type { Shard } from '../../membership/shards.ts'
import type { ProviderChange } from '../../records/provider-state.ts'
import { recordCall } from '../../records/records.ts'
import { storableText } from '../session/arrays.ts'
import { runRecord } from '../session/record-calls.ts'
import { isForeign } from './queries.ts'
import { sent, sentOnce, type Send, type Transaction } from './write-transaction.ts'

/** Tells the owner of a shard of a record, unless it is the caller. */
export const tellOwner = `
  insert into arrival (shard, kind, record) select $2::smallint, $3, $4 where ${isForeign('$2::smallint')} returning shard`

export const recordWriter =
  (node: OwnerId): Send<'record'> =>
  (tx, sentCalls) => {
    const calls = sentCalls.map((call) => ({ call: recordCall(call), args: call[2] }))
    const answers = Promise.all(
      calls.map(async ({ call, args }) => {
        const [answer] = await Promise.all([
          runRecord(tx, call, ...args),
          call.tells === undefined ? null : tellProvider(tx, node, args[0] as ProviderChange),
        ])
        return answer
      }),
    )
    const hadEffect = (all: readonly unknown[]): boolean => calls.some(({ call: { kind } }, n) => kind === 'once' && all[n] !== false)
    return calls.some(({ call: { kind } }) => kind === 'once') ? sentOnce(tx, answers, hadEffect) : sent(answers)
  }

/** Tells the owner of a provider of its change, unless it is the caller. */
export async function tellProvider(tx: Transaction, node: OwnerId, record: ProviderChange): Promise<void> {
  const shard = tx.shardOf(nameOfProvider(record.provider))
  tx.told(await tx.query<{ shard: Shard }>(tellOwner, [node, shard, 'providers', storableText(JSON.stringify(record))]))
}
