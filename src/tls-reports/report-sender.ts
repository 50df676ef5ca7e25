/**
 * Sends the reports about the day before to the domains that ask for them (RFC 8460 §3, §5): each at a time of its own in the first hours of the
 * UTC day, and again every hour until the end of that day while it fails. A claim in the queue keeps other nodes from the same report.
 */
import { tlsrptName, tlsrptRecord } from '../delivery/tls/tlsrpt-record.ts'
import { errorMessage } from '../system/caught-error.ts'
import { DAY, HOUR, MINUTE, type Clock, type Duration, type WallTime } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { Day, ReportEnd } from '../store/records/tls-report.ts'
import { compressed, type ReportFacts } from './report-json.ts'
import { mailtoAddress } from './report-mail.ts'
import { postReport } from './report-post.ts'
import { dayOf, midnightOf } from './result-counts.ts'

export interface ReportSettings {
  readonly enabled: boolean
  /** smtp_tlsrpt_sender */
  readonly sender: string
  readonly organization: string
  readonly hostname: string
  readonly allowPrivate: boolean
}

interface ReportSenderDeps {
  readonly store: Pick<QueueStore, 'records'>
  readonly net: Net
  readonly clock: Clock
  readonly settings: () => ReportSettings
  /** True when this node sends the reports of the domain. */
  readonly owns: (domain: string) => boolean
  /** Returns a number in [0, 1) that depends only on the name; see Random.draw. */
  readonly draw: (key: string) => number
  /** Queues the mail of a report, signed. Resolves with the reason of a failure; undefined when the mail is queued. */
  readonly mail: (report: ReportFacts, recipient: string) => Promise<string | undefined>
  readonly note: (text: string, level: 'info' | 'warning') => void
}

const INTERVAL: Duration = 5 * MINUTE
/** Time after midnight at which all nodes have kept their counts. */
const SETTLED: Duration = 5 * MINUTE
/** Time over which the reports of a day are spread. */
const SPREAD: Duration = 4 * HOUR
const RETRY_INTERVAL: Duration = HOUR
/** Limited, so that a slow server delays the report of its own domain only. */
const DOMAINS_AT_ONCE = 10
const KEPT_DAYS = 3

export class ReportSender {
  readonly #deps: ReportSenderDeps
  #task: PeriodicTask | null = null
  #closed = false
  /** The day for which old results were deleted. */
  #pruned: Day = ''

  constructor(deps: ReportSenderDeps) {
    this.#deps = deps
  }

  /** Begins to look for reports that are due; called again after a change of the settings. */
  start(): void {
    const failed = (error: unknown): void => {
      if (!this.#closed) this.#deps.note(`TLSRPT: reports cannot be sent: ${errorMessage(error)}`, 'warning')
    }
    if (this.#isSending) this.#task ??= every(this.#deps.clock, INTERVAL, () => this.#sendDue(), { failed })
  }

  /** Ends the search for due reports. A report that is being sent may fail then, and is sent by the next process. */
  close(): void {
    this.#closed = true
    void this.#task?.stop()
  }

  async #sendDue(): Promise<void> {
    const { store, clock } = this.#deps
    if (!this.#isSending) return
    const midnight = midnightOf(clock.wall.now())
    const day = dayOf(midnight - DAY)
    if (this.#pruned !== day) await store.records.tlsReports.prune(dayOf(midnight - KEPT_DAYS * DAY))
    this.#pruned = day
    const domains = (await store.records.tlsReports.due(day)).values()
    const sendNext = async (): Promise<void> => {
      for (const domain of domains) await this.#sendIfDue(day, domain, midnight)
    }
    const ended = await Promise.allSettled(Array.from({ length: DOMAINS_AT_ONCE }, sendNext))
    for (const one of ended) if (one.status === 'rejected') throw one.reason
  }

  async #sendIfDue(day: Day, domain: string, midnight: WallTime): Promise<void> {
    const { store, clock, owns, draw } = this.#deps
    const dueAt = midnight + SETTLED + draw(`TLSRPT ${day} ${domain}`) * SPREAD
    const at = clock.now()
    if (!this.#isSending || clock.wall.of(at) < dueAt || !owns(domain)) return
    if (await store.records.tlsReports.claim({ day, domain, at, until: at + RETRY_INTERVAL })) await this.#send(day, domain, midnight - DAY)
  }

  get #isSending(): boolean {
    return !this.#closed && this.#deps.settings().enabled
  }

  async #send(day: Day, domain: string, from: WallTime): Promise<void> {
    const { store, net, note, settings } = this.#deps
    const end = (how: ReportEnd): Promise<void> => store.records.tlsReports.end({ day, domain, end: how })
    const record = tlsrptRecord(await net.lookupTxt(tlsrptName(domain)))
    if (record.kind === 'failed') return
    if (record.kind !== 'found') return end('unwanted')
    const { organization, sender, hostname } = settings()
    const id = `${day}.${domain}.tlsrpt@${hostname}`
    const facts = { domain, from, results: await store.records.tlsResults.of(day, domain), organization, contact: sender, id }
    const ends = await Promise.all(record.rua.map(async (uri) => ({ uri, failure: await this.#sendTo(uri, facts) })))
    for (const { uri, failure } of ends)
      if (failure !== undefined) note(`TLSRPT: the report of ${day} for ${domain} cannot be sent to ${uri}: ${failure}`, 'warning')
    const sentTo = ends.flatMap(({ uri, failure }) => (failure === undefined ? [uri] : []))
    // A report that has arrived somewhere is not repeated, because its receivers would count it twice.
    if (sentTo.length === 0) return
    await end('sent')
    note(`TLSRPT: report of ${day} for ${domain} sent to ${sentTo.join(', ')}`, 'info')
  }

  async #sendTo(uri: string, facts: ReportFacts): Promise<string | undefined> {
    const { net, clock, settings, mail } = this.#deps
    if (/^https:/i.test(uri)) return postReport(uri, compressed(facts), { net, clock, allowPrivate: settings().allowPrivate })
    const recipient = mailtoAddress(uri)
    return recipient === undefined ? 'its address is not valid' : mail(facts, recipient)
  }
}
