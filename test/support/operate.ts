import { DAY } from '../../src/system/clock.ts'
import type { MessageId } from '../../src/mail/message.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import type { Operation, OperationResult } from '../../src/store/message-operation.ts'

/** Times of the defaults of the configuration. */
export const RETENTION = { trash_lifetime: DAY, history_retention: 7 * DAY }

/** Operation of an operator on one message. */
export async function operate(store: QueueStore, message: MessageId, operation: Operation): Promise<OperationResult> {
  const [result] = (await store.operate([{ message, operation }])) ?? []
  if (result === undefined) throw new Error('the store answered nothing')
  return result
}
