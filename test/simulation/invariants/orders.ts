/** Orders of operators: what begins after one has answered, and what becomes of mail that was in transfer then. */
import type { DestinationName, MessageId, RecipientId } from '../../../src/mail/message.ts'
import type { Operation } from '../../../src/store/message-operation.ts'
import type { Complain, Invariant, Scene } from '../replay.ts'

/** Operations that let attempts of a message begin again. */
const RETURNS: ReadonlySet<Operation['kind']> = new Set(['release', 'restore'])
const ENDS: ReadonlySet<Operation['kind']> = new Set(['hold', 'delete', 'expire', 'requeue'])

/** A message whose attempts an order has ended. */
interface Ended {
  readonly by: Operation['kind']
  /** Recipients in transfer when a requeue was committed, or when it answered: they stay with their message. */
  readonly stays: ReadonlySet<RecipientId>
}

/**
 * No attempt of the messages of an order begins after it has answered, until another order returns them; after a suspension, none to the
 * destination. Of an order that failed or was lost, nothing is known.
 */
export function nothingBeginsAfterAnOrder(complain: Complain): Invariant {
  /** Changes of the order that is being carried out. */
  const changing = new Map<MessageId, Ended>()
  const ended = new Map<MessageId, Ended>()
  const suspended = new Set<DestinationName>()
  const staying = (by: Operation['kind'], scene: Scene): readonly RecipientId[] =>
    by === 'requeue' ? [...scene.underWay.values()].flatMap(({ recipients }) => recipients.map(({ id }) => id)) : []
  const answered = (scene: Scene): void => {
    for (const [message, { by, stays }] of changing) ended.set(message, { by, stays: new Set([...stays, ...staying(by, scene)]) })
    changing.clear()
  }
  return {
    see({ where, event }, scene) {
      if (where === 'queue' && event.kind === 'resumed') suspended.delete(event.destination)
      if (where !== 'test') return
      if (event.did === 'was carried out') {
        answered(scene)
        if (event.order === 'suspend' && event.destination !== undefined) suspended.add(event.destination)
      }
      if (event.did === 'was refused') changing.clear()
      if (event.did === 'committed' && event.method === 'saveDestination' && event.record.suspension === null)
        suspended.delete(event.record.name)
      if (event.did === 'committed' && event.method === 'operate')
        for (const { message, operation } of event.operations) {
          // A message that operators expired stays so.
          if (RETURNS.has(operation.kind) && ended.get(message)?.by !== 'expire') ended.delete(message)
          if (ENDS.has(operation.kind) && ended.get(message)?.by !== 'expire')
            changing.set(message, { by: operation.kind, stays: new Set(staying(operation.kind, scene)) })
        }
      if (event.did !== 'began') return
      const order = ended.get(event.message)
      if (order !== undefined && !event.recipients.every(({ id }) => order.stays.has(id)))
        complain(`an attempt of message ${event.message} began after ${order.by} had answered`)
      if (suspended.has(event.destination)) complain(`an attempt to ${event.destination} began after its suspension had answered`)
    },
  }
}
