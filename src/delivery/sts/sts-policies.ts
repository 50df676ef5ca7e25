/**
 * MTA-STS policies of recipient domains (RFC 8461): asks for the record of a domain, fetches its policy, keeps it in the queue, and
 * refreshes kept policies in the background. Delivery waits at most 10 s for a new policy, and goes on with the kept one, or without one.
 */
import { errorMessage } from '../../system/caught-error.ts'
import { DAY, HOUR, MINUTE, SECOND, sleep, withTimeout, type Duration, type QueueTime } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import type { StsPolicy, StsRecords } from '../../store/records/sts-policy.ts'
import { fetchPolicy, type FetchDeps, type Fetched } from './policy-fetch.ts'
import type { UnfetchedPolicy } from '../tls/tls-stage.ts'
import { decideSts, isExpired, refreshOf } from './sts-decision.ts'
import { announcementIn, InvalidPolicy, parsePolicy, recordName, type StsAnnouncement } from './sts-record.ts'

interface StsDeps extends Pick<FetchDeps, 'net' | 'clock'> {
  /** Terms of fetches, as of the last reload. */
  readonly terms: () => Pick<FetchDeps, 'ca' | 'allowPrivate'>
  readonly store: Pick<StsRecords, 'keep' | 'note' | 'forget'>
  readonly reader: Pick<StsRecords, 'of' | 'all'>
  /** True when this node refreshes the policy of the domain. */
  readonly owns: (domain: string) => boolean
  /** Returns a number in [0, 1) that depends only on the name; see Random.draw. */
  readonly draw: (key: string) => number
  readonly note: (text: string, level?: 'info' | 'warning') => void
  /** Fetches the text of a policy; over HTTPS when absent. */
  readonly fetch?: typeof fetchPolicy | undefined
}

/** Rules for one delivery. `unreadable`: the queue cannot be read, so that no policy may be taken as absent. */
export type StsRules =
  /** `unfetched` is the failure to get the policy that the domain announces; absent when it announces none. */
  | { readonly kind: 'none'; readonly unfetched?: UnfetchedPolicy | undefined }
  | { readonly kind: 'policy'; readonly policy: StsPolicy }
  | { readonly kind: 'unreadable'; readonly why: string }

/** Time for which the answer to a look-up of the record is used. */
const RECORD_TIME: Duration = MINUTE
/** Maximum time that a delivery waits for the record and a new policy. */
const PATIENCE: Duration = 10 * SECOND
const REFRESH_INTERVAL: Duration = HOUR
/** Time between two fetches in the background. */
const REFRESH_PAUSE: Duration = SECOND
/** Maximum number of domains in memory. The one that was added first is dropped. */
const MOST_DOMAINS = 10_000

/** A domain in memory. */
interface Known {
  kept: StsPolicy | undefined
  readonly announced: StsAnnouncement
  /** Time of the look-up on the monotonic clock. */
  readonly askedAt: Duration
}

export class StsPolicies {
  readonly #deps: StsDeps
  readonly #known = new Map<string, Known>()
  readonly #asking = new Map<string, Promise<Known>>()
  readonly #fetching = new Map<string, Promise<StsPolicy | undefined>>()
  /** Failed fetches, by domain. */
  readonly #failures = new Map<string, UnfetchedPolicy & { readonly at: QueueTime }>()
  #refresh: PeriodicTask | null = null
  #closed = false

  constructor(deps: StsDeps) {
    this.#deps = deps
  }

  /** Begins to refresh the kept policies. Without any, the first one that is kept begins it. */
  async start(): Promise<void> {
    if ((await this.#deps.reader.all()).length > 0) this.#arm()
  }

  close(): void {
    this.#closed = true
    void this.#refresh?.stop()
  }

  /** The policy for mail to a domain. `last` is true at the last attempt before the mail expires, which fetches the policy anew. */
  async rulesFor(domain: string, last: boolean): Promise<StsRules> {
    const { clock } = this.#deps
    const endBy = clock.monotonic() + PATIENCE
    let known: Known
    try {
      known = await this.#ask(domain, endBy)
    } catch (error) {
      return { kind: 'unreadable', why: `the MTA-STS policy of ${domain} cannot be read: ${errorMessage(error)}` }
    }
    const failedAt = this.#failures.get(domain)?.at ?? null
    const { applies, fetch } = decideSts({ kept: known.kept, announced: known.announced, now: clock.now(), failedAt, last })
    const fetched = fetch === undefined ? undefined : await this.#waitFor(this.#fetch(domain, fetch, clock.now()), endBy)
    const policy = fetched ?? applies
    if (policy === undefined || isExpired(policy, clock.now()))
      return { kind: 'none', unfetched: known.announced.kind === 'id' ? this.#failures.get(domain) : undefined }
    if (policy.mode === 'none') return { kind: 'none' }
    await this.#noteUse(policy)
    return { kind: 'policy', policy }
  }

  /** Removes what is in memory about a domain, whose policy was removed from the queue. */
  forget(domain: string): void {
    this.#known.delete(domain)
    this.#failures.delete(domain)
  }

  #waitFor<T>(promise: Promise<T>, endBy: Duration): Promise<T | undefined> {
    const { clock } = this.#deps
    return withTimeout(promise, clock, Math.max(0, endBy - clock.monotonic()))
  }

  #ask(domain: string, endBy: Duration): Promise<Known> {
    const known = this.#known.get(domain)
    if (known !== undefined && this.#deps.clock.monotonic() - known.askedAt < RECORD_TIME) return Promise.resolve(known)
    const running = this.#asking.get(domain)
    if (running !== undefined) return running
    const asking = this.#askAnew(domain, endBy).finally(() => this.#asking.delete(domain))
    this.#asking.set(domain, asking)
    return asking
  }

  /** Reads the kept policy, and looks the record up. Rejects when the queue cannot be read. */
  async #askAnew(domain: string, endBy: Duration): Promise<Known> {
    const { reader, clock } = this.#deps
    const kept = await reader.of(domain)
    const announced = (await this.#waitFor(this.#announced(domain), endBy)) ?? { kind: 'failed', reason: 'no answer in time' }
    const known = { kept, announced, askedAt: clock.monotonic() }
    this.#known.delete(domain)
    this.#known.set(domain, known)
    const [oldest] = this.#known.keys()
    if (this.#known.size > MOST_DOMAINS && oldest !== undefined) this.#known.delete(oldest)
    return known
  }

  async #announced(domain: string): Promise<StsAnnouncement> {
    return announcementIn(await this.#deps.net.lookupTxt(recordName(domain)))
  }

  /** Fetches and keeps a policy; undefined when it cannot be fetched. One fetch of a domain runs at a time. */
  #fetch(domain: string, id: string, usedAt: QueueTime): Promise<StsPolicy | undefined> {
    const running = this.#fetching.get(domain)
    if (running !== undefined) return running
    const fetching = this.#fetchAnew(domain, id, usedAt).finally(() => this.#fetching.delete(domain))
    this.#fetching.set(domain, fetching)
    return fetching
  }

  async #fetchAnew(domain: string, id: string, usedAt: QueueTime): Promise<StsPolicy | undefined> {
    const { net, clock, terms, fetch = fetchPolicy } = this.#deps
    const fetched = await fetch(domain, { ...terms(), net, clock })
    const policy = policyFrom(fetched, { domain, id, usedAt, now: clock.now() })
    if ('reason' in policy) {
      const type = fetched.kind === 'text' ? 'sts-policy-invalid' : fetched.webpki ? 'sts-webpki-invalid' : 'sts-policy-fetch-error'
      await this.#failed(domain, id, { type, reason: policy.reason })
      return undefined
    }
    this.#failures.delete(domain)
    const known = this.#known.get(domain)
    if (known !== undefined) known.kept = policy
    await this.#tryToStore(domain, (store) => store.keep(policy))
    this.#arm()
    return policy
  }

  async #failed(domain: string, id: string, { type, reason }: UnfetchedPolicy): Promise<void> {
    const { clock, note } = this.#deps
    const failedAt = clock.now()
    this.#failures.delete(domain)
    this.#failures.set(domain, { type, reason, at: failedAt })
    const [oldest] = this.#failures.keys()
    if (this.#failures.size > MOST_DOMAINS && oldest !== undefined) this.#failures.delete(oldest)
    note(`MTA-STS policy of ${domain} (id ${id}) cannot be fetched: ${reason}`, 'warning')
    await this.#tryToStore(domain, (store) => store.note({ domain, failedAt, failure: reason }))
  }

  /** Records a use once a day. */
  async #noteUse({ domain, usedAt }: StsPolicy): Promise<void> {
    const now = this.#deps.clock.now()
    const known = this.#known.get(domain)
    if (now - usedAt < DAY || known?.kept === undefined || now - known.kept.usedAt < DAY) return
    known.kept = { ...known.kept, usedAt: now }
    await this.#tryToStore(domain, (store) => store.note({ domain, usedAt: now }))
  }

  /** A policy that cannot be stored applies until the process ends. */
  async #tryToStore(domain: string, change: (store: StsDeps['store']) => Promise<void>): Promise<void> {
    try {
      await change(this.#deps.store)
    } catch (error) {
      this.#deps.note(`MTA-STS policy of ${domain} cannot be stored: ${errorMessage(error)}`, 'warning')
    }
  }

  #arm(): void {
    const { clock, note } = this.#deps
    const failed = (error: unknown): void => note(`MTA-STS policies cannot be refreshed: ${errorMessage(error)}`, 'warning')
    if (!this.#closed) this.#refresh ??= every(clock, REFRESH_INTERVAL, () => this.#refreshAll(), { failed })
  }

  /** Fetches and drops kept policies, at most one per second. */
  async #refreshAll(): Promise<void> {
    const { reader, store, clock, draw, owns } = this.#deps
    for (const policy of await reader.all()) {
      if (this.#closed || !owns(policy.domain)) continue
      const action = refreshOf(policy, clock.now(), draw(`MTA-STS ${policy.domain} ${policy.fetchedAt}`))
      if (action === 'keep') continue
      if (action === 'drop') await store.forget(policy.domain)
      else {
        const announced = await this.#announced(policy.domain)
        await this.#fetch(policy.domain, announced.kind === 'id' ? announced.id : policy.id, policy.usedAt)
      }
      await sleep(clock, REFRESH_PAUSE)
    }
  }
}

/** Makes a policy from what was fetched, or returns why it is none. */
export function policyFrom(
  fetched: Fetched,
  { domain, id, usedAt, now }: { readonly domain: string; readonly id: string; readonly usedAt: QueueTime; readonly now: QueueTime },
): StsPolicy | { readonly reason: string } {
  if (fetched.kind === 'failed') return { reason: fetched.reason }
  try {
    const { mode, mx, maxAge } = parsePolicy(fetched.text)
    const times = { fetchedAt: now, expiresAt: now + maxAge, usedAt, failedAt: null }
    return { domain, id, mode, mx, text: fetched.text, ...times, failure: null }
  } catch (error) {
    if (error instanceof InvalidPolicy) return { reason: `the policy is not valid: ${error.message}` }
    throw error
  }
}
