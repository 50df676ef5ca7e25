/**
 * Erases addresses of mail that has left the queue, as an operation. What is to be erased is durable, so that an operation whose process
 * ended goes on: here after the restart, or at another node. It cannot be undone.
 */
import { addressPattern } from '../patterns/filter-pattern.ts'
import { pseudonymOf } from '../mail/pseudonym.ts'
import { formatInstant } from '../mail/message-times.ts'
import type { Actor, IdempotentRequest } from '../store/records/audit-log.ts'
import type { ErasureStep, ErasureTerms } from '../store/returned-mail.ts'
import { Eraser } from '../store/erasure/eraser.ts'
import { ANY_MESSAGE, senderPattern, type QueueFilter } from '../store/message-conditions.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { rethrowUnlessUnavailable, StoreUnavailable, type QueueStore } from '../store/queue-store.ts'
import { keyPeriod, type StoredErasure } from '../store/records/erasure.ts'
import { MINUTE, SECOND, sleep, type Clock, type Duration } from '../system/clock.ts'
import { randomOctets, type Random } from '../system/random.ts'
import { shellWord } from '../system/shell-word.ts'
import { OperationLeft, type OperationJobs, type StartedOperation } from './operation-jobs.ts'
import { ERASE, type OperationSummary } from './operation-request.ts'

/** Time for which an erasure belongs to its node without a slice. */
const LEASE: Duration = MINUTE
/** Pause while the write-ahead log cannot be emptied. */
const PAUSE: Duration = SECOND
/** Number of ids that one slice of a count covers. */
const COUNTED = 16_000
/** Slices take as much time as rounds of so many messages. */
const WEIGHT = 100
/** Bytes of a key. */
const KEY_BYTES = 32

interface ErasureRequest extends Actor {
  readonly terms: ErasureTerms
  readonly reason: string | null
  readonly request: IdempotentRequest | null
}

/** The changes that an erasure would make. */
export interface ErasurePlan {
  /** Number of rows by table; tables without such a row are omitted. Those of `history` are messages. */
  readonly rows: ReadonlyMap<string, number>
  /** Messages of such addresses in the queue and in the trash, which stay as they are. */
  readonly live: number
}

interface ErasingDeps {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly clock: Clock
  readonly random: Random
  readonly jobs: OperationJobs
  readonly throttle?: ((messages: number) => Promise<void>) | undefined
}

type Place = NonNullable<ErasureStep['next']>

export class Erasing {
  readonly #deps: ErasingDeps

  constructor(deps: ErasingDeps) {
    this.#deps = deps
  }

  /** Changes nothing. */
  async plan(terms: ErasureTerms): Promise<ErasurePlan> {
    const rows = new Map<string, number>()
    for (let place: Place | null | undefined; place !== null;) {
      // The texts of a plan are not stored, and need no key.
      const step: ErasureStep | null = await this.#deps.store.departed.erase({ terms, key: '', ...placeOf(place), round: null, until: 0 })
      if (step === null) break
      if (step.rows > 0) rows.set(step.of, (rows.get(step.of) ?? 0) + step.rows)
      place = step.next
      await this.#deps.throttle?.(WEIGHT)
    }
    return { rows, live: await this.#live(terms) }
  }

  /** Begins an erasure. Rejects with RequestRepeated when the request was carried out before. */
  async start({ terms, reason, request, ...actor }: ErasureRequest): Promise<StartedOperation> {
    const { clock, jobs, store } = this.#deps
    const key = await currentKey(this.#deps)
    const words = wordsOf(terms, key, clock)
    const told = reason === null ? null : new Eraser(terms, key).text(reason)
    const record = { at: clock.now(), ...actor, action: ERASE, arguments: words, reason: told, request }
    const started = await jobs.carry({ ...record, expected: null, undoUntil: null, undoes: null }, async (operation, isStopped) => {
      const erasure = { ...terms, operation, stage: null, after: null, until: clock.now() + LEASE }
      await store.records.erasures.add(erasure)
      return this.#carryOut(erasure, isStopped)
    })
    return { id: started.id, ended: this.#ended(started) }
  }

  /** Goes on with the erasures whose process ended. Resolves when they have begun. */
  async goOn(): Promise<void> {
    const { store, clock, jobs } = this.#deps
    for (const erasure of await store.records.erasures.all()) {
      const now = clock.now()
      if (erasure.until > now) continue
      if (!(await store.records.erasures.take({ operation: erasure.operation, until: now + LEASE, now }))) continue
      const going = jobs.goOn(erasure.operation, (_, isStopped) => this.#carryOut(erasure, isStopped))
      this.#ended(going).catch(() => undefined)
    }
  }

  /** Forgets an erasure after the end of its operation, so that a crash in between does not make it a failed one. */
  async #ended({ id, ended }: StartedOperation): Promise<OperationSummary> {
    const forget = () => this.#deps.store.records.erasures.end(id).catch(rethrowUnlessUnavailable)
    try {
      const summary = await ended
      await forget()
      return summary
    } catch (error) {
      // The row of an erasure that is left stays: its process or another one goes on.
      if (!(error instanceof OperationLeft)) await forget()
      throw error
    }
  }

  async #carryOut(erasure: StoredErasure, isStopped: () => boolean): Promise<OperationSummary> {
    try {
      return await this.#slices(erasure, isStopped)
    } catch (error) {
      throw error instanceof StoreUnavailable ? new OperationLeft(error.message, { cause: error }) : error
    }
  }

  async #slices({ operation, stage, after, ...terms }: StoredErasure, isStopped: () => boolean): Promise<OperationSummary> {
    const { store, reader, clock, jobs, throttle } = this.#deps
    const key = await currentKey(this.#deps)
    let matched = (await reader.records.audit.one(operation))?.changed ?? 0
    for (let place: Place | null = stage === null ? null : { stage, after }; ;) {
      const now = clock.now()
      const round = { operation, at: now, matched }
      const step: ErasureStep | null = await store.departed.erase({ terms, key, ...placeOf(place), round, until: now + LEASE })
      if (step === null) throw await jobs.cancelled(operation)
      if (step.of === 'history') matched += step.rows
      place = step.next
      if (place === null) return { matched, changed: matched, inTransfer: 0, unknown: [] }
      if (isStopped()) throw new OperationLeft('the daemon stops')
      await (step.advances ? throttle?.(WEIGHT) : sleep(clock, PAUSE))
    }
  }

  /** Number of messages in the queue and in the trash. */
  async #live({ side, pattern }: ErasureTerms): Promise<number> {
    const filter = { ...ANY_MESSAGE, ...(side === 'sender' ? { sender: senderPattern(pattern) } : { recipient: addressPattern(pattern) }) }
    return (await this.#counted(filter)) + (await this.#counted({ ...filter, queue: 'trash' }))
  }

  async #counted(filter: QueueFilter): Promise<number> {
    const { reader } = this.#deps
    const through = await reader.lastId()
    let messages = 0
    for (let after: number | null = 0; after !== null;) {
      const slice: Awaited<ReturnType<QueueReader['survey']>> = await reader.survey(filter, {
        after,
        through,
        size: COUNTED,
        queues: null,
        destinations: false,
      })
      messages += slice.messages
      after = slice.last
    }
    return messages
  }
}

/** Parts that the key of a queue needs. */
export type KeyDeps = Required<Pick<ErasingDeps, 'clock' | 'random'>> & { readonly store: Pick<QueueStore, 'records'> }

/** The key of the year for the texts that stand for addresses, which the first one who asks makes. */
export async function currentKey({ store, clock, random }: KeyDeps): Promise<string> {
  const keys = store.records.erasureKeys
  const period = keyPeriod(clock.wall.now())
  const known = await keys.newest()
  if (known !== undefined && known.period >= period) return known.key
  const key = randomOctets(random, 'erasure key', KEY_BYTES).toString('hex')
  await keys.add({ period, key })
  await keys.prune({ period })
  return (await keys.newest())?.key ?? key
}

const placeOf = (place: Place | null | undefined): { readonly stage: string | null; readonly after: string | null } =>
  place ?? { stage: null, after: null }

/** The terms as arguments of the command, without an address: a pattern of all addresses of a domain stays as it is. */
function wordsOf({ side, pattern, before }: ErasureTerms, key: string, { wall }: Clock): string {
  const told = /^\*(?:@[^@]*)?$/.test(pattern) ? pattern : pseudonymOf(key, pattern)
  return [`--${side}=${told}`, `--before=${formatInstant(wall.of(before))}`].map(shellWord).join(' ')
}
