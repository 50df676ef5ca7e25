/**
 * A process with the store of a daemon whose syncs are slow, or fail (io-faults): it settles deliveries one after the other without waiting, and
 * prints what it was told, in order. Argument: the folder of the queue.
 */
import { claim, delivered, first, queue, T0 } from '../conformance/mail.ts'
import { openWorkerStore } from '../../src/store/sqlite/clients/worker-store.ts'
import { errorMessage } from '../../src/system/caught-error.ts'
import { sleep } from '../../src/system/clock.ts'
import { systemClock } from '../../src/system/system-clock.ts'

/** An acknowledgement of a settlement, or the answer to a request for the free space after it. */
type Told = readonly [what: 'written' | 'durable' | 'failed' | 'space', settlement: number]

export interface SlowSyncs {
  /** In order, by the numbers of the settlements. */
  readonly told: readonly Told[]
  /** Failures of the store that were reported. */
  readonly failures: readonly string[]
  /** The answer of a call after all others, or its error. */
  readonly last: string
}

const SETTLEMENTS = 60
/** Syncs after which the store no longer waits for each of them. */
const BEFORE = 6

const told: Told[] = []
const failures: string[] = []

const { store } = await openWorkerStore({ directory: process.argv[2] ?? '' }, { onFailed: (failure) => failures.push(failure.message) })
const ids = await Promise.all(Array.from({ length: SETTLEMENTS }, () => queue(store)))
const { requests } = await claim(store, T0, { limit: SETTLEMENTS })
if (requests.length !== SETTLEMENTS) throw new Error(`${requests.length} of ${SETTLEMENTS} messages were claimed`)
for (let n = 0; n < BEFORE; n++) await store.upkeep.ping()
const settled: Promise<unknown>[] = []
for (const [n, message] of ids.entries()) {
  const settlement = { owner: store.leaseTerms().owner, message, recipients: [delivered(first(message), T0)], attempts: [] }
  const durable = store.settle(settlement, () => told.push(['written', n]))
  settled.push(
    durable.then(
      () => told.push(['durable', n]),
      () => told.push(['failed', n]),
    ),
  )
  void store.upkeep.freeSpace().then(
    () => told.push(['space', n]),
    () => undefined,
  )
  await sleep(systemClock, 20)
}
await Promise.all(settled)
const last = await store.upkeep.ping().then(
  () => 'answered',
  (error: unknown) => errorMessage(error),
)
await store.close()
process.stdout.write(JSON.stringify({ told, failures, last } satisfies SlowSyncs))
