/**
 * Operations on mail that the remote server always defers (`busy-…`), through the API of the daemon: after each
 * kill every message is where its last operation left it, or where an interrupted one may have left it.
 */
import { expect } from 'vitest'
import { openDaemonClient } from '../../../src/cli/queue-client/api-client.ts'
import type { OperationName } from '../../../src/queue/operation-request.ts'
import { queueIdOf } from '../../../src/mail/message.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { openQueueReader } from '../../../src/store/sqlite/reading/sqlite-reader.ts'

type Place = 'queued' | 'hold' | 'deleted'

interface Parked {
  /** Null after a requeue, which gives the message a new id, until the queue is read. */
  queueId: string | null
  /** Places where the message may be now; one after an acknowledged operation. */
  places: ReadonlySet<Place>
}

/** Places after an operation, by the place before. */
const AFTER: Readonly<Record<'hold' | 'release' | 'requeue' | 'delete', (before: Place) => Place>> = {
  hold: (before) => (before === 'deleted' ? before : 'hold'),
  release: (before) => (before === 'deleted' ? before : 'queued'),
  requeue: (before) => (before === 'deleted' ? before : 'queued'),
  delete: () => 'deleted',
}
type Order = keyof typeof AFTER
const ORDERS: readonly Order[] = ['hold', 'release', 'requeue', 'delete']

/** Messages from which on more are deleted than added. */
const MANY = 40

export class ParkedMail {
  readonly #directory: string
  readonly #chance: () => number
  readonly #mail = new Map<string, Parked>()
  /** Acknowledged operations. */
  operations = 0

  constructor(directory: string, chance: () => number) {
    this.#directory = directory
    this.#chance = chance
  }

  /** Adds an acknowledged message. */
  add(address: string, queueId: string): void {
    this.#mail.set(address, { queueId, places: new Set<Place>(['queued']) })
  }

  /** Sends one operation about a few messages to the daemon. Resolves with false when the daemon did not acknowledge it. */
  async operate(): Promise<boolean> {
    const live = [...this.#mail.values()].filter(({ queueId, places }) => queueId !== null && !places.has('deleted'))
    if (live.length === 0) return true
    const order = live.length > MANY ? 'delete' : (ORDERS[Math.floor(this.#chance() * ORDERS.length)] ?? 'hold')
    const chosen = live.filter(() => this.#chance() < 4 / live.length)
    return this.#order(order, chosen)
  }

  /** Deletes all of them. */
  deleteAll(): Promise<boolean> {
    return this.#order('delete', [...this.#mail.values()])
  }

  async #order(order: Order, chosen: readonly Parked[]): Promise<boolean> {
    const ids = chosen.flatMap(({ queueId }) => queueId ?? [])
    const ordered = chosen.map((one) => ({ one, after: new Set([...one.places].map(AFTER[order])) }))
    for (const { one, after } of ordered) {
      one.places = new Set([...one.places, ...after])
      if (order === 'requeue') one.queueId = null
    }
    // An operation on no message is refused.
    if (ids.length > 0 && !(await perform(this.#directory, order, ids))) return false
    // Mail in delivery stays with the old message when it is requeued.
    if (order !== 'requeue') for (const { one, after } of ordered) one.places = after
    this.operations++
    return true
  }

  /** Compares with the queue on disk, while no daemon runs, and asserts that every message is in a place where it may be. */
  async compare(): Promise<void> {
    const reader = openQueueReader(this.#directory)
    try {
      const found = new Map<string, { readonly queueId: string; readonly place: Place }>()
      const listed = await reader.list({ ...ANY_MESSAGE, recipient: 'busy-*' }, { after: 0, limit: 100_000 })
      for (const { message, queue, recipients } of listed)
        for (const { address } of recipients)
          found.set(address, { queueId: queueIdOf(message), place: queue === 'hold' ? 'hold' : 'queued' })
      const misplaced = [...this.#mail].filter(([address, { places }]) => !places.has(found.get(address)?.place ?? 'deleted'))
      expect(misplaced.map(([address, { places }]) => ({ address, expected: [...places], found: found.get(address) }))).toEqual([])
      for (const [address, parked] of this.#mail) {
        const now = found.get(address)
        if (now === undefined) this.#mail.delete(address)
        else Object.assign(parked, { queueId: now.queueId, places: new Set([now.place]) })
      }
      // Mail that was committed but whose reply the kill took: no client knows its queue id.
      for (const [address, { queueId, place }] of found)
        if (!this.#mail.has(address)) this.#mail.set(address, { queueId, places: new Set([place]) })
    } finally {
      await reader.close()
    }
  }
}

/** False when the daemon does not run, or was killed before it had reported the end of the operation. */
export async function perform(directory: string, operation: OperationName, ids: readonly string[]): Promise<boolean> {
  return asked(directory, (client) =>
    client.perform({
      operation,
      selection: { kind: 'ids', ids },
      queues: null,
      purge: false,
      release: null,
      class: null,
      dryRun: false,
      who: 'test',
    }),
  )
}

/** Suspends a destination and resumes it; false when the daemon did not report the end. */
export const suspendAndResume = (directory: string, destination: string): Promise<boolean> =>
  asked(directory, async (client) => {
    await client.suspend(destination, { who: 'test', duration: null, reason: null })
    await client.resume(destination, 'test')
  })

type Client = NonNullable<Awaited<ReturnType<typeof openDaemonClient>>>

async function asked(directory: string, action: (client: Client) => Promise<unknown>): Promise<boolean> {
  try {
    const client = await openDaemonClient(directory)
    if (client === null) return false
    await action(client)
    return true
  } catch (error) {
    // The daemon was killed during the request.
    if (error instanceof Error && ('code' in error || 'exitCode' in error || error instanceof SyntaxError)) return false
    throw error
  }
}
