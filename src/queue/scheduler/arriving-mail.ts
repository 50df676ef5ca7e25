/**
 * Mail on its way into memory (claims, and new mail whose commit is awaited), and the messages of which no attempt begins, because an operation
 * takes their mail back.
 */
import type { DeliveryRequest, MessageId } from '../../mail/message.ts'

/** The messages of an operation, from its begin until their mail is taken back. */
export interface Recall {
  readonly messages: readonly MessageId[]
  /** True when no claim is made for a time, so that the operation can change the mail before it is claimed again. */
  readonly rests: boolean
  /** Messages of which mail was given back. */
  readonly given: Set<MessageId>
  /** Commits of mail that arrived meanwhile. */
  readonly commits: Promise<void>[]
}

export class ArrivingMail {
  readonly #recalls = new Map<MessageId, Set<Recall>>()
  /** Claims whose mail is not in memory yet, and claims of mail that is not attempted. */
  readonly #claims = new Set<Promise<unknown>>()
  readonly #expiredClaims = new Set<Promise<unknown>>()
  /** New mail with a lease whose commit is awaited, each with the calls that wait for it. */
  readonly #entering = new Map<MessageId, (() => void)[]>()

  begin(recall: Recall): void {
    for (const message of recall.messages) this.#recalls.set(message, (this.#recalls.get(message) ?? new Set()).add(recall))
  }

  end(recall: Recall): void {
    for (const message of recall.messages) {
      const recalls = this.#recalls.get(message)
      recalls?.delete(recall)
      if (recalls?.size === 0) this.#recalls.delete(message)
    }
  }

  /** The recalls that name a message. */
  recallsOf(message: MessageId): Iterable<Recall> {
    return this.#recalls.get(message) ?? []
  }

  isRecalled(message: MessageId): boolean {
    return this.#recalls.has(message)
  }

  /** The requests whose messages are being recalled. */
  recalled(requests: readonly DeliveryRequest[]): readonly DeliveryRequest[] {
    return this.#recalls.size === 0 ? [] : requests.filter(({ message }) => this.#recalls.has(message.id))
  }

  /** Notes that mail of a message returns to the store. True when no claim may be made for a time. */
  returning(message: MessageId): boolean {
    let rests = false
    for (const recall of this.recallsOf(message)) {
      recall.given.add(message)
      rests ||= recall.rests
    }
    return rests
  }

  /** The mail that is on its way now and may be that of a recall. Each promise resolves when that mail is in memory. */
  before({ messages, rests }: Recall): readonly Promise<unknown>[] {
    return [...this.#claims, ...(rests ? this.#expiredClaims : []), ...messages.flatMap((message) => this.#entered(message))]
  }

  /** Tracks a claim until its mail is in memory. */
  claiming<T>(claim: Promise<T>): Promise<T> {
    return tracked(claim, this.#claims)
  }

  /** Tracks a claim of mail that is not attempted, until the mail is settled or given back. */
  claimingExpired<T>(claim: Promise<T>): Promise<T> {
    return tracked(claim, this.#expiredClaims)
  }

  /** Tracks new mail with a lease, until `endEnter`. */
  beginEnter(message: MessageId): void {
    if (!this.#entering.has(message)) this.#entering.set(message, [])
  }

  endEnter(message: MessageId): void {
    const waiters = this.#entering.get(message)
    this.#entering.delete(message)
    for (const wake of waiters ?? []) wake()
  }

  #entered(message: MessageId): readonly Promise<void>[] {
    const waiters = this.#entering.get(message)
    return waiters === undefined ? [] : [new Promise((resolve) => waiters.push(resolve))]
  }
}

function tracked<T>(claim: Promise<T>, claims: Set<Promise<unknown>>): Promise<T> {
  const ended: Promise<unknown> = claim.then(
    () => claims.delete(ended),
    () => claims.delete(ended),
  )
  claims.add(ended)
  return claim
}
