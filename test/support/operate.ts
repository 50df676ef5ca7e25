import type { MessageId } from '../../src/queue/message.ts'
import type { Operation, OperationResult, QueueStore } from '../../src/queue/store.ts'

/** What an operator does to one message. */
export async function operate(store: QueueStore, message: MessageId, operation: Operation): Promise<OperationResult> {
  const [result] = await store.operate([{ message, operation }])
  if (result === undefined) throw new Error('the store answered nothing')
  return result
}
