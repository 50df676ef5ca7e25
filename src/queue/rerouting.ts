/**
 * After the configuration has changed, mail that waits goes where it would go if it came in now: to another
 * destination, or with another lifetime. Done in short slices beside the mail that flows.
 */
import type { Instant } from '../mail/clock.ts'
import type { Message } from './message.ts'
import type { QueueReader } from './reader.ts'
import type { DestinationDue, Move, QueueStore } from './store.ts'

export interface ReroutingParts {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly routeOf: (address: string, message: Pick<Message, 'createdAt' | 'sender'>) => Omit<Move, 'recipient'>
  readonly woken: (due: readonly DestinationDue[], options: { readonly expiresAt: Instant }) => void
  readonly now: () => Instant
  /** Lets others run between slices. */
  readonly pause: () => Promise<void>
}

/** Messages per slice: a few milliseconds. */
const SLICE = 250

/** Walks through the queue once; says how many recipients were moved. */
export async function reroute({ store, reader, routeOf, woken, now, pause }: ReroutingParts): Promise<number> {
  let moved = 0
  for (let after = 0, last = false; !last;) {
    const page = reader.list({}, { after, limit: SLICE, now: now() })
    last = page.length < SLICE
    after = page.at(-1)?.message.id ?? after
    const moves: Move[] = []
    for (const { message, recipients } of page) {
      for (const { id, address, destination, expiresAt } of recipients) {
        const route = routeOf(address, message)
        if (route.destination !== destination || route.expiresAt !== expiresAt) moves.push({ recipient: id, ...route })
      }
    }
    if (moves.length > 0) {
      woken(await store.move(moves), { expiresAt: Math.min(...moves.map((move) => move.expiresAt)) })
      moved += moves.length
    }
    await pause()
  }
  return moved
}
