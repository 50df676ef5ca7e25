/**
 * Takes mail back that was claimed and waits for a slot, so that no attempt of it begins after an operation on its message was answered.
 * Mail that is on its way into memory meanwhile (claims and new mail, whose commits are awaited) is given back when it arrives.
 */
import type { DeliveryRequest, MessageId } from '../../mail/message.ts'
import type { TakenBack } from '../../store/membership/taken-back.ts'
import { SECOND, type Duration } from '../../system/clock.ts'
import type { TaskSet } from '../../system/task-set.ts'
import type { ActiveQueue } from './active-queue.ts'
import type { DueQueue } from './due-queue.ts'
import type { ForcedExpiry } from './forced-expiry.ts'
import type { GiveBack } from './give-back.ts'

export interface TakeBackDeps {
  readonly active: ActiveQueue
  readonly due: DueQueue
  readonly tasks: TaskSet
  readonly giveBack: GiveBack
  readonly forcedExpiry: ForcedExpiry
}

/** A call of `messages` that is in progress. */
interface Recall {
  readonly rests: boolean
  readonly given: Set<MessageId>
  /** Commits of mail that arrived meanwhile. */
  readonly commits: Promise<void>[]
}

/** Time without claims in which an operation can change mail that was taken back for it. */
const REST: Duration = SECOND / 5

export class TakeBack {
  readonly #deps: TakeBackDeps
  /** Messages of which no attempt begins. */
  readonly #recalls = new Map<MessageId, Set<Recall>>()
  /** Claims whose mail is not in memory yet, and claims of mail that is not attempted. */
  readonly #claims = new Set<Promise<unknown>>()
  readonly #expiredClaims = new Set<Promise<unknown>>()
  /** New mail with a lease whose commit is awaited, each with the calls that wait for it. */
  readonly #entering = new Map<MessageId, (() => void)[]>()

  constructor(deps: TakeBackDeps) {
    this.#deps = deps
  }

  /**
   * Gives the mail of these messages back that has no slot, and resolves when that is committed. With `rests`, no claim follows for REST when
   * mail was given back, so that the caller can change it before it is claimed again.
   */
  async messages(messages: readonly MessageId[], { rests }: { readonly rests: boolean }): Promise<TakenBack> {
    const recall: Recall = { rests, given: new Set(), commits: [] }
    for (const message of messages) this.#recalls.set(message, (this.#recalls.get(message) ?? new Set()).add(recall))
    try {
      const { giveBack, forcedExpiry } = this.#deps
      const wanted = new Set(messages)
      const returned = [giveBack.ofMessages(messages), forcedExpiry.giveBack(({ message }) => wanted.has(message.id))]
      await Promise.all([
        ...returned,
        ...this.#claims,
        ...(rests ? this.#expiredClaims : []),
        ...messages.flatMap((message) => this.#entered(message)),
      ])
      await Promise.all(recall.commits)
    } finally {
      for (const message of messages) this.#end(message, recall)
    }
    return { given: [...recall.given], inTransfer: messages.filter((message) => this.#deps.active.isInTransfer(message)) }
  }

  #end(message: MessageId, recall: Recall): void {
    const recalls = this.#recalls.get(message)
    recalls?.delete(recall)
    if (recalls?.size === 0) this.#recalls.delete(message)
  }

  // --- mail that arrives

  /** Tracks a claim until its mail is in memory. */
  claiming<T>(claim: Promise<T>): Promise<T> {
    return tracked(claim, this.#claims)
  }

  /** Tracks a claim of mail that is not attempted. */
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

  /** Gives requests back whose messages are being taken back. Returns the others. The active queue does not count them. */
  passing(requests: readonly DeliveryRequest[]): readonly DeliveryRequest[] {
    if (this.#recalls.size === 0) return requests
    const returned = requests.filter(({ message }) => this.#recalls.has(message.id))
    if (returned.length === 0) return requests
    const commit = this.#deps.giveBack.ofAny(returned)
    this.#deps.tasks.add(commit)
    for (const { message } of returned) for (const recall of this.#recalls.get(message.id) ?? []) recall.commits.push(commit)
    return requests.filter((request) => !returned.includes(request))
  }

  /** Notes that mail of a message returns to the store. */
  returning(message: MessageId): void {
    for (const recall of this.#recalls.get(message) ?? []) {
      recall.given.add(message)
      if (recall.rests) this.#deps.due.rest(REST)
    }
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
