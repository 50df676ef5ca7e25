/**
 * Checks of domains that operators order from a relay that runs: bounded in number and in time, each in the audit log, with the last report
 * of a domain kept in the queue (store/records/domain-check). Nothing else makes one: to read a report looks nothing up.
 */
import type { Actor } from '../store/records/audit-log.ts'
import type { DomainReportJson } from '../resources/domains/domain-check-json.ts'
import { domainOf } from '../mail/address.ts'
import { rethrowUnlessUnavailable, type QueueStore } from '../store/queue-store.ts'
import type { DomainCheck } from '../store/records/domain-check.ts'
import { errorMessage } from '../system/caught-error.ts'
import { MINUTE, SECOND, withTimeout, type Clock, type Duration } from '../system/clock.ts'
import { TaskSet } from '../system/task-set.ts'
import type { DomainQuestion } from './domain-question.ts'

interface DomainChecksDeps {
  readonly store: Pick<QueueStore, 'records'>
  readonly clock: Clock
  /** Name of this node. */
  readonly node: string
  readonly answer: (question: DomainQuestion, signal: AbortSignal) => Promise<DomainReportJson>
}

/** Checks of one node at once. */
const MOST_AT_ONCE = 4
/** A check ends after this time, because a host may answer as slowly as it likes. */
const LONGEST: Duration = 2 * MINUTE
/** In bytes. The size of a report depends on records of strangers. */
const LARGEST_REPORT = 256 * 1024

/** Domain of the senders of a question. */
export const senderDomainOf = ({ from }: Pick<DomainQuestion, 'from'>): string => (from.includes('@') ? domainOf(from) : from)

type Ended = { readonly report: DomainReportJson } | { readonly failure: string }

export class DomainChecks {
  readonly #deps: DomainChecksDeps
  readonly #stopping = new AbortController()
  readonly #running = new TaskSet((error) => {
    throw error
  })
  #count = 0

  constructor(deps: DomainChecksDeps) {
    this.#deps = deps
  }

  /** Begins a check, unless the same one goes on. Answers `busy` while this node makes MOST_AT_ONCE. Rejects with StoreUnavailable. */
  async order(question: DomainQuestion, actor: Actor): Promise<'goes-on' | 'busy'> {
    const { store, clock, node } = this.#deps
    if (this.#count >= MOST_AT_ONCE || this.#stopping.signal.aborted) return 'busy'
    this.#count++
    const { domain } = question
    const beganAt = clock.now()
    const sender = senderDomainOf(question)
    const row: DomainCheck = { domain, sender, orderedBy: actor.who, node, beganAt, endedAt: null, failure: null, report: null }
    let check: Promise<void> | undefined
    try {
      if (await store.records.domainChecks.begin(row)) {
        await store.records.audit.add({ at: beganAt, ...actor, action: 'check domain', arguments: `${domain} from=${sender}`, changed: 0 })
        check = this.#make(question, sender, beganAt).finally(() => void this.#count--)
      }
    } finally {
      if (check === undefined) this.#count--
    }
    if (check !== undefined) this.#running.add(check.catch(rethrowUnlessUnavailable))
    return 'goes-on'
  }

  /** Ends the checks that go on. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await withTimeout(this.#running.settled(), this.#deps.clock, 5 * SECOND)
  }

  async #make(question: DomainQuestion, sender: string, beganAt: number): Promise<void> {
    const { store, clock } = this.#deps
    const ended = await this.#answer(question)
    await store.records.domainChecks.end({ domain: question.domain, sender, beganAt, endedAt: clock.now(), failure: null, ...ended })
  }

  async #answer(question: DomainQuestion): Promise<Ended> {
    const { clock, answer } = this.#deps
    const end = new AbortController()
    const signal = AbortSignal.any([end.signal, this.#stopping.signal])
    try {
      const report = await withTimeout(answer(question, signal), clock, LONGEST, this.#stopping.signal)
      if (report === undefined) return { failure: this.#stopping.signal.aborted ? 'the daemon stopped' : TOO_SLOW }
      return JSON.stringify(report).length > LARGEST_REPORT ? { failure: TOO_LARGE } : { report }
    } catch (error) {
      return { failure: errorMessage(error) }
    } finally {
      end.abort()
    }
  }
}

const TOO_SLOW = `the hosts or the name servers of the domain did not answer within ${LONGEST / SECOND} seconds: repeat the check later`
const TOO_LARGE = `the records of the domain make a report of more than ${LARGEST_REPORT / 1024} kB: use deferd check domain on the machine of the relay`
