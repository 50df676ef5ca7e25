/**
 * Cancels messages at the request of their submitters. The point of decision is the begin of an attempt: a recipient without one is removed, in one
 * transaction, after its claim was taken back; the outcome of a recipient in transfer is recorded as always.
 */
import { queueIdOf, type MessageId, type Recipient } from '../mail/message.ts'
import type { MessageDetails } from '../store/queue-reader.ts'
import type { Operation } from '../store/message-operation.ts'
import type { RoundDeps } from './operation-rounds.ts'
import type { SelectedMessage } from './selected-messages.ts'

/** A message with its recipients, after the cancellation. */
export interface Cancelled {
  readonly queueId: string
  readonly cancelled: readonly string[]
  /** Recipients with an outcome, or in transfer. */
  readonly tooLate: readonly string[]
}

/** True for a recipient that its submitter has cancelled. */
export const isCancelled = ({ state, last }: Pick<Recipient, 'state' | 'last'>): boolean => state === 'removed' && last?.stage === 'cancel'

type Deps = Pick<RoundDeps, 'store' | 'reader' | 'clock' | 'events' | 'recorder' | 'scheduler'>

/**
 * Cancels messages, and resolves when no attempt of a cancelled recipient can begin, at any node and after any crash. Rejects with NotTakenBack
 * when a running node does not answer; nothing is changed then, or the call may be repeated.
 */
export async function cancelMessages(deps: Deps, messages: readonly SelectedMessage[], by: string): Promise<readonly Cancelled[]> {
  const { store, reader, clock, scheduler } = deps
  const ids = messages.map(({ id }) => id)
  await scheduler.takeBack(ids, { rests: true })
  const changed = new Set<MessageId>()
  for (let isOpen = true; isOpen;) {
    const operation: Operation = { kind: 'cancel', now: clock.now(), by }
    const results = (await store.operate(messages.map(({ id }) => ({ message: id, operation })))) ?? []
    ids.forEach((id, n) => (results[n]?.changed === true ? changed.add(id) : changed))
    // Mail that was claimed meanwhile, and has no slot, is given back and cancelled too.
    isOpen = (await scheduler.takeBack(ids, { rests: true })).given.length > 0
  }
  const details = await Promise.all(messages.map((message) => reader.details(queueIdOf(message))))
  const found = details.flatMap((one) => (one === undefined ? [] : [one]))
  await report(
    deps,
    found.filter(({ message }) => changed.has(message.id)),
    by,
  )
  return found.map(outcomeOf)
}

function outcomeOf({ message, recipients }: MessageDetails): Cancelled {
  const addresses = (are: boolean) => recipients.filter((one) => isCancelled(one) === are).map(({ address }) => address)
  return { queueId: queueIdOf(message), cancelled: addresses(true), tooLate: addresses(false) }
}

/** Reports the recipients that this call has cancelled. Programs are told when that is committed. */
async function report({ store, events, recorder }: Deps, changed: readonly MessageDetails[], by: string): Promise<void> {
  const happened = changed.map((details) => {
    const { queueId, cancelled } = outcomeOf(details)
    return { kind: 'cancelled' as const, queueId, by, recipients: cancelled }
  })
  for (const event of happened) events.emit(event)
  const kept = recorder.ofAll(happened)
  if (kept !== undefined) await store.outbox.recordEvents(kept)
}
