/**
 * A store in a process of its own, so that its CPU time is that of one node. `node life-process.ts PLACE INDEX OF` runs the traffic
 * that its parent sends, and answers with its cost. `startLifeProcess` starts it.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { claimTimes, liveThrough, queueWaiting, type Traffic } from './life-cycle.ts'
import { destinationsOf, openBenchStore, type Share } from './bench-store.ts'

/** Destinations of the mail of one process. */
const DESTINATIONS = 8
/** Recipients of one claim whose time is measured. */
const CLAIMED = 100

export interface Took {
  readonly seconds: number
  /** CPU seconds of the process. */
  readonly cpu: number
}

type Load = Omit<Traffic, 'destinations'>

type Order =
  | ({ readonly kind: 'live' } & Load)
  /** Queues messages of the first destination, which wait. */
  | { readonly kind: 'wait'; readonly messages: number }
  /** Claims 100 of them, so many times. */
  | { readonly kind: 'claim'; readonly claims: number }

export interface LifeProcess {
  /** Lets messages live in the store. */
  run(load: Load): Promise<Took>
  /** Queues messages that wait at the first destination. */
  queueWaiting(messages: number): Promise<void>
  /** Times of claims of 100 of those, in ms. */
  claimTimes(claims: number): Promise<readonly number[]>
  /** Closes the store and ends the process. */
  stop(): Promise<void>
}

export async function startLifeProcess(place: string, { index, of }: Share = { index: 0, of: 1 }): Promise<LifeProcess> {
  const child = fork(import.meta.filename, [place, String(index), String(of)], { execArgv: [] })
  const ended = once(child, 'exit')
  await answer(child)
  const ask = async (order: Order): Promise<unknown> => {
    child.send(order)
    return answer(child)
  }
  return {
    run: async (load) => (await ask({ kind: 'live', ...load })) as Took,
    queueWaiting: async (messages) => void (await ask({ kind: 'wait', messages })),
    claimTimes: async (claims) => (await ask({ kind: 'claim', claims })) as readonly number[],
    stop: async () => {
      if (child.connected) child.disconnect()
      await ended
    },
  }
}

/** The next message of the process. Rejects when it ends instead. */
async function answer(child: ChildProcess): Promise<unknown> {
  const waiting = new AbortController()
  try {
    const { signal } = waiting
    return await Promise.race([
      once(child, 'message', { signal }).then(([message]: unknown[]) => message),
      once(child, 'exit', { signal }).then(() => Promise.reject(new Error('the process of a store has ended'))),
    ])
  } finally {
    waiting.abort()
  }
}

async function serve(place: string, share: Share): Promise<void> {
  const { store, close } = await openBenchStore(place, share)
  const destinations = destinationsOf(share, DESTINATIONS)
  const [first = ''] = destinations
  const live = async (load: Load): Promise<Took> => {
    const [cpu, began] = [process.cpuUsage(), performance.now()]
    await liveThrough(store, { ...load, destinations })
    const { user, system } = process.cpuUsage(cpu)
    return { seconds: (performance.now() - began) / 1_000, cpu: (user + system) / 1e6 }
  }
  const carryOut = async (order: Order): Promise<unknown> => {
    switch (order.kind) {
      case 'live':
        return live(order)
      case 'wait':
        return queueWaiting(store, first, order.messages).then(() => 'queued')
      case 'claim':
        return claimTimes(store, { destination: first, limit: CLAIMED, claims: order.claims })
    }
  }
  process.on('message', (order: Order) => {
    carryOut(order).then(
      (answered) => process.send?.(answered),
      (error: unknown) => {
        process.stderr.write(`${String(error)}\n`)
        process.exit(1)
      },
    )
  })
  process.once('disconnect', () => void close())
  process.send?.('ready')
}

if (import.meta.main) {
  const [place = '', index, of] = process.argv.slice(2)
  await serve(place, { index: Number(index), of: Number(of) })
}
