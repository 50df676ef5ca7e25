/**
 * Routes waiting mail again after a change of the configuration. Mail may get another destination or another lifetime, as if it
 * had just arrived. The work is done in short slices, so that deliveries continue.
 */
import type { QueueTime } from '../system/clock.ts'
import { isOfAliases, type DestinationName, type Message } from '../mail/message.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { DestinationDue, Move } from '../store/message-operation.ts'

interface RerouteDeps {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly routeOf: (address: string, message: Pick<Message, 'createdAt' | 'sender' | 'notBefore' | 'expires'>) => Omit<Move, 'recipient'>
  readonly woken: (due: readonly DestinationDue[], options: { readonly expiresAt: QueueTime }) => void
  /** True for destinations whose mail this process routes: all of them in a queue with one owner. */
  readonly routes: (destination: DestinationName) => boolean
  /** Lets other work run between slices. */
  readonly pause: () => Promise<void>
}

/** Number of messages per slice. A slice takes a few milliseconds. */
const SLICE = 250

/** Routes the whole queue once and returns the number of moved recipients. */
export async function reroute({ store, reader, routeOf, woken, routes, pause }: RerouteDeps): Promise<number> {
  let moved = 0
  for (let after = 0, last = false; !last;) {
    const page = await reader.list(ANY_MESSAGE, { after, limit: SLICE })
    last = page.length < SLICE
    after = page.at(-1)?.message.id ?? after
    const moves: Move[] = []
    for (const { message, recipients } of page) {
      for (const { id, address, destination, expiresAt } of recipients) {
        if (isOfAliases(destination) || !routes(destination)) continue
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
