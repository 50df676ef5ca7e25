/** Compares the events that a receiver has taken with the history of the queue. */
import type { QueueReader } from '../../src/store/queue-reader.ts'
import type { WorldEvent } from '../../src/testkit/index.ts'
import { eventsTellTheHistory } from '../simulation/invariants/events.ts'
import type { Scene } from '../simulation/replay.ts'
import { storiesIn } from '../simulation/run.ts'
import type { WebhookLedger } from './webhook-ledger.ts'

export interface WebhookAccount {
  readonly messages: number
  readonly events: number
  /** Requests for events that were taken before, with the same id and body. */
  readonly repeated: number
  /** Events that were taken after one with a higher number. */
  readonly outOfOrder: number
  /** Wrong signatures, and differences between the events and the history. */
  readonly faults: readonly string[]
}

/** The history has all messages that were ever accepted; the queue is at rest. */
export async function webhookAccount(ledger: WebhookLedger, reader: QueueReader): Promise<WebhookAccount> {
  const faults = [...ledger.faults]
  const taken = [...ledger.taken.values()]
  const events = taken.toSorted((a, b) => a.seq - b.seq).map(({ seq, type, data }) => ({ seq, type, at: 0, data }) as unknown as WorldEvent)
  const stories = await storiesIn(reader)
  const told = { at: 0, where: 'test', event: { did: 'told', events, stories } } as const
  eventsTellTheHistory((text) => void faults.push(text)).see(told, {} as Scene)
  let [last, outOfOrder] = [0, 0]
  for (const { seq } of taken) {
    if (seq < last) outOfOrder++
    last = Math.max(last, seq)
  }
  return { messages: stories.length, events: events.length, repeated: ledger.repeated, outOfOrder, faults: faults.slice(0, 20) }
}
