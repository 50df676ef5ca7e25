/** Claimed mail that nodes give back, because an operation has changed its messages or a destination was suspended. */
import type { DestinationName, MessageId } from '../../mail/message.ts'

/** Messages of a recall, by the state of their mail at its end. */
export interface TakenBack {
  /** Messages of which claimed mail was given back. */
  readonly given: readonly MessageId[]
  /** Messages of which a recipient is in transfer. */
  readonly inTransfer: readonly MessageId[]
}

/** Claimed mail that nodes give back: that of messages, or all of a destination that an operator has suspended. */
export interface Recall {
  readonly messages: readonly MessageId[]
  readonly destination: DestinationName | null
  /** True when nodes that gave mail back make no claims for a moment. */
  readonly rests: boolean
}

export const NOTHING_TAKEN: TakenBack = { given: [], inTransfer: [] }

/** The sum of several nodes. */
export const takenTogether = (all: readonly TakenBack[]): TakenBack => ({
  given: [...new Set(all.flatMap(({ given }) => given))],
  inTransfer: [...new Set(all.flatMap(({ inTransfer }) => inTransfer))],
})
