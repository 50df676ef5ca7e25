/** Rows of the methods of the store's ports: how the transports, the batches of PostgreSQL and a full disk treat each of them. */
import type { DeliveryRequest, MessageId } from '../mail/message.ts'
import type { NewMessage } from './new-message.ts'

/**
 * Treatment of a method on a full disk:
 * - `needs`: the method adds mail and is refused until there is free space;
 * - `lease`: the method leads to outcomes and is refused while there is no room to record them;
 * - `reserve`: the method records outcomes or removes mail, and may use the reserved disk space;
 * - `neither`: the method is attempted without the reserved space.
 */
export type Room = 'needs' | 'lease' | 'reserve' | 'neither'

/** Maps one chunk. `given` is true when the chunk's buffer may be moved instead of copied. */
export type ChangeChunk = (chunk: Uint8Array, given: boolean) => Uint8Array

/**
 * How PostgreSQL is sent the calls of a method:
 * - `direct`: the method reads only, or is one statement, and needs no transaction of the writing session;
 * - `alone`: it takes several round trips, or changes many rows, so that each call has a transaction of its own;
 * - `batched`: it shares a transaction with any other calls;
 * - a function: messages, contents, destinations and other names of a call; it shares a transaction with calls that have none of them.
 */
type Sending<A> = 'direct' | 'alone' | 'batched' | ((args: A) => readonly string[])

export interface Traits<A, R> {
  readonly room: Room
  readonly sending: Sending<A>
  /**
   * Returns the messages that a call may have moved to another queue, or whose live recipients it may have changed. The tally
   * counts them again.
   */
  readonly changes: (args: A, answer: R) => readonly MessageId[]
  /** True when the answer tells nothing of changes that may be lost, so that it does not wait for them to be durable. */
  readonly isIndependent?: true
  /** Absent when the method takes no chunks. */
  readonly chunks?: {
    /** Returns the chunks in the arguments. */
    readonly in: (args: A) => readonly Uint8Array[]
    /** Applies a function to each chunk in the arguments. */
    readonly map: (args: A, change: ChangeChunk) => A
  }
}

/** A row for each method of a port. */
export type MethodRows<P> = {
  readonly [M in keyof P]: P[M] extends (...args: infer A) => Promise<infer R> ? Traits<A, R> : never
}

export const withContent = (entry: NewMessage, change: ChangeChunk): NewMessage => ({
  ...entry,
  content: entry.content.map((chunk) => change(chunk, entry.givesContent === true)),
})

export const nothing = (): readonly MessageId[] => []

export const leased = (requests: readonly DeliveryRequest[]): readonly MessageId[] => requests.map(({ message }) => message.id)
