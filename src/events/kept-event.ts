/** Events as the queue keeps them: numbered, with the values of their data as JSON text. */
import type { RecipientId } from '../mail/message.ts'
import { SECOND, type QueueTime, type WallTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { isEventType, type EventType } from './event-types.ts'

/** Number of an event: 1, 2, 3 … without gaps, in the order in which they are read. Never used twice. */
export type EventSeq = number

/** An event that is to be kept. */
export interface NewEvent {
  readonly type: EventType
  readonly at: QueueTime
  /** The data as `keptData` writes them. */
  readonly data: string
}

/** An event about a recipient, which is kept only when the settlement of the recipient is applied. */
export interface RecipientEvent extends NewEvent {
  readonly recipient: RecipientId
}

export interface KeptEvent extends NewEvent {
  readonly seq: EventSeq
}

/** Events that were deleted before they were read: the first and last number, and how many of them were asked for. */
export interface LostEvents {
  readonly from: EventSeq
  readonly to: EventSeq
  readonly count: number
}

/** Id of an event, equal each time it is sent. `epoch` is a random number of the queue, so that another queue has other ids. */
export const eventId = (epoch: number, seq: EventSeq): string => `evt_${epoch.toString(36)}_${seq}`

/**
 * Time of an event on the wall clock. The offset of the queue's clock from it is measured anew by each process, and is rounded to seconds:
 * an event then has the same time whoever sends it, unless the wall clock was set meanwhile.
 */
export const eventTime = ({ at }: Pick<NewEvent, 'at'>, wall: WallView): WallTime => at - Math.round((at - wall.of(at)) / SECOND) * SECOND

/** Id of the event that tells of a loss. */
export const lostEventId = (epoch: number, { from, to }: LostEvents): string => `evt_${epoch.toString(36)}_${from}-${to}`

/** Position in the events of a queue, as text: the event after which to read. */
export const cursorText = (epoch: number, seq: EventSeq): string => `${epoch.toString(36)}_${seq}`

/** Reads the text of a position. `0` is the position before the first event of any queue; undefined for other text. */
export function readCursor(text: string): { readonly epoch: number | null; readonly seq: EventSeq } | undefined {
  if (text === '0') return { epoch: null, seq: 0 }
  const [, epoch, seq] = /^(?:evt_)?([0-9a-z]{1,8})_(\d{1,15})$/.exec(text) ?? []
  return epoch === undefined ? undefined : { epoch: Number.parseInt(epoch, 36), seq: Number(seq) }
}

/** The type of a stored event. Throws for a type that deferd never writes. */
export function storedType(text: string): EventType {
  if (!isEventType(text)) throw new Error(`the event type ${text} is unknown`)
  return text
}
