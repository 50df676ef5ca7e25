/**
 * What is known of the recipients of one request while hosts are tried one after the other: who is done, who may still
 * fare better elsewhere, and what the whole says about the destination (postfix smtp_trouble, fact sheet §4.3).
 */
import type { DeliveryStatus } from '../mail/reply.ts'
import type { LeasedRecipient, RecipientId } from '../queue/message.ts'
import type { Judgement, Verdict } from './classify.ts'
import type { Feedback, RecipientOutcome } from './delivery-agent.ts'

/** Nothing at all could be tried. */
const UNTRIED: RecipientOutcome = { outcome: 'deferred', status: '4.3.0', reason: 'no host could be tried', stage: 'route' }

export class OutcomeBoard {
  readonly #final = new Map<RecipientId, RecipientOutcome>()
  readonly #open = new Map<RecipientId, { readonly recipient: LeasedRecipient; readonly verdict?: Verdict | undefined }>()
  #site: DeliveryStatus | undefined
  #completed = false
  #congestion: 'early' | 'late' | undefined
  /** Why recipients are still open, for the log line when another host is tried. */
  #reasons = new Set<string>()
  /** The last word says nothing about the destination. */
  #silent = false

  constructor(recipients: readonly LeasedRecipient[]) {
    for (const recipient of recipients) this.#open.set(recipient.id, { recipient })
  }

  /** Recipients that another host may still help. */
  get open(): readonly LeasedRecipient[] {
    return [...this.#open.values()].map(({ recipient }) => recipient)
  }

  get settled(): boolean {
    return this.#open.size === 0
  }

  /** A host has had its say. `silent`: whatever it was, it says nothing about the destination. */
  record(judgement: Judgement, silent = false): void {
    this.#reasons.clear()
    for (const [id, verdict] of judgement.verdicts) {
      const entry = this.#open.get(id)
      if (entry === undefined) continue
      if (verdict.elsewhere) {
        this.#open.set(id, { ...entry, verdict })
        this.#reasons.add(verdict.reason)
      } else {
        this.#open.delete(id)
        this.#final.set(id, outcomeOf(verdict))
      }
    }
    this.#site = judgement.site
    this.#completed ||= judgement.completed
    this.#congestion = judgement.congestion ?? this.#congestion
    this.#silent = silent
  }

  /** The same verdict for everybody who is still open. */
  recordAll(verdict: Verdict, site: DeliveryStatus | undefined, silent = false): void {
    this.record({ verdicts: new Map(this.open.map(({ id }) => [id, verdict])), site, completed: false }, silent)
  }

  /** Why the last host left recipients open; asked once, when another one is tried. */
  takeReasons(): string[] {
    const reasons = [...this.#reasons]
    this.#reasons.clear()
    return reasons
  }

  /** The last word for everybody. */
  close(): {
    readonly outcomes: ReadonlyMap<RecipientId, RecipientOutcome>
    readonly feedback: Feedback
    readonly congestion: 'early' | 'late' | undefined
    readonly hopStatus: DeliveryStatus | undefined
  } {
    for (const [id, { verdict }] of this.#open) this.#final.set(id, verdict === undefined ? UNTRIED : outcomeOf(verdict))
    this.#open.clear()
    const site = this.#site
    const deferred = [...this.#final.values()].some((outcome) => outcome.outcome === 'deferred' && outcome.status === site?.status)
    const negative = site !== undefined && deferred && !this.#completed
    const feedback = negative ? 'negative' : this.#silent && !this.#completed ? 'none' : 'positive'
    return { outcomes: this.#final, feedback, congestion: this.#congestion, hopStatus: negative ? site : undefined }
  }
}

function outcomeOf(verdict: Verdict): RecipientOutcome {
  const { elsewhere: _elsewhere, ...outcome } = verdict
  return outcome
}
