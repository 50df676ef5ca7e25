/**
 * Tracks the outcomes of one request's recipients while its hosts are tried in turn. An outcome is final, or open: another host
 * may improve it. The tracker also determines the feedback for the destination (Postfix smtp_trouble.c).
 */
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { LeasedRecipient, RecipientId } from '../mail/message.ts'
import type { Classification, Verdict } from './classify.ts'
import type { Feedback, LoginFailure, RecipientOutcome } from './delivery-agent.ts'

/** Outcome when no host could be tried. */
const UNTRIED: RecipientOutcome = {
  outcome: 'deferred',
  status: { status: '4.3.0', reason: 'no host could be tried', stage: 'route' },
}

/**
 * True for an outcome of a session, such as a reply or a failed TLS handshake. Such an outcome explains more than an address that
 * does not answer, and is kept when another address is then unreachable.
 */
const isTelling = ({ status: { stage } }: Verdict): boolean => stage !== 'connect' && stage !== 'dns' && stage !== 'route'

export class OutcomeTracker {
  readonly #final = new Map<RecipientId, RecipientOutcome>()
  readonly #open = new Map<RecipientId, { readonly recipient: LeasedRecipient; readonly verdict?: Verdict | undefined }>()
  #siteStatus: DeliveryStatus | undefined
  #completed = false
  #congestion: 'early' | 'late' | undefined
  #login: LoginFailure | undefined
  /** Reasons of the open recipients, logged when another host is tried. */
  #reasons = new Set<string>()
  /** True when the last result gives no feedback about the destination. */
  #withoutFeedback = false

  constructor(recipients: readonly LeasedRecipient[]) {
    for (const recipient of recipients) this.#open.set(recipient.id, { recipient })
  }

  /** Recipients whose outcome is open, so that another host may be tried. */
  get open(): readonly LeasedRecipient[] {
    return [...this.#open.values()].map(({ recipient }) => recipient)
  }

  get settled(): boolean {
    return this.#open.size === 0
  }

  /** True when no host has had a result for the open recipients. */
  get isUntried(): boolean {
    return [...this.#open.values()].some(({ verdict }) => verdict === undefined)
  }

  /** Records the result of one host. With `withoutFeedback`, the result gives no feedback about the destination. */
  record(result: Classification, withoutFeedback = false): void {
    this.#reasons.clear()
    let keepsEarlier = false
    for (const [id, verdict] of result.verdicts) {
      const entry = this.#open.get(id)
      if (entry === undefined) continue
      if (verdict.elsewhere) {
        const earlier = entry.verdict !== undefined && isTelling(entry.verdict) && !isTelling(verdict)
        keepsEarlier ||= earlier
        if (!earlier) this.#open.set(id, { ...entry, verdict })
        this.#reasons.add(verdict.status.reason)
      } else {
        this.#open.delete(id)
        this.#final.set(id, verdict)
      }
    }
    if (!keepsEarlier) this.#siteStatus = result.siteStatus
    this.#completed ||= result.completed
    this.#congestion = result.congestion ?? this.#congestion
    this.#login = result.login
    this.#withoutFeedback = withoutFeedback
  }

  /** Records one verdict for all open recipients. */
  recordAll(verdict: Verdict, siteStatus: DeliveryStatus | undefined, withoutFeedback = false): void {
    this.record({ verdicts: new Map(this.open.map(({ id }) => [id, verdict])), siteStatus, completed: false }, withoutFeedback)
  }

  /** Returns the reasons why the last host left recipients open, and clears them. */
  takeReasons(): string[] {
    const reasons = [...this.#reasons]
    this.#reasons.clear()
    return reasons
  }

  /** Makes the outcomes of all recipients final. Returns the outcomes, and the feedback about the destination. */
  close(): {
    readonly outcomes: ReadonlyMap<RecipientId, RecipientOutcome>
    readonly feedback: Feedback
    readonly congestion: 'early' | 'late' | undefined
    readonly siteStatus: DeliveryStatus | undefined
    readonly login: LoginFailure | undefined
  } {
    for (const [id, { verdict }] of this.#open) this.#final.set(id, verdict ?? UNTRIED)
    this.#open.clear()
    const site = this.#siteStatus
    const deferred = [...this.#final.values()].some(({ outcome, status }) => outcome === 'deferred' && status.status === site?.status)
    const negative = site !== undefined && deferred && !this.#completed
    const feedback = negative ? 'negative' : this.#withoutFeedback && !this.#completed ? 'none' : 'positive'
    return { outcomes: this.#final, feedback, congestion: this.#congestion, siteStatus: negative ? site : undefined, login: this.#login }
  }
}
