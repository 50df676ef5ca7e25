/** Records settlements in memory: the new states of leased recipients, their attempts, and the notices due. */
import type { MessageId, RecipientId } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { settledMail } from '../decisions/settlement.ts'
import type { Settlement, SettleResult } from '../recorded-outcomes.ts'
import { KEEP_SESSION } from '../records/stored-session.ts'
import type { HeldMail } from './held-mail.ts'
import { owesNotice } from './notices-due.ts'
import type { QueueOwner } from './queue-owner.ts'
import { noteTraffic, type HeldMessage, type MemoryQueue } from './queue-state.ts'
import { settleOne } from './recipient-states.ts'
import { setAside } from './recovery.ts'

export class Outcomes {
  readonly #queue: MemoryQueue
  readonly #owner: QueueOwner
  readonly #mail: HeldMail

  constructor(queue: MemoryQueue, owner: QueueOwner, mail: HeldMail) {
    this.#queue = queue
    this.#owner = owner
    this.#mail = mail
  }

  async settle({ owner, message, recipients, attempts, warnAt, events = [], sessions = [], keepUntil }: Settlement): Promise<SettleResult> {
    const held = this.#queue.messages.get(message)
    if (held === undefined) return { removed: false, noticeDue: false }
    const applied = new Set<RecipientId>()
    for (const settled of recipients) {
      const one = held.recipients.find(({ id }) => id === settled.recipient)
      if (!this.#mail.isLease(one, owner)) continue
      applied.add(one.id)
      settleOne(one, settled, held)
      this.#mail.tellDue(one)
    }
    const made = attempts.filter((attempt) => applied.has(attempt.recipient))
    const [path] = held.recipients.filter(({ id }) => applied.has(id))
    const settled = recipients.filter(({ recipient }) => applied.has(recipient))
    if (path !== undefined)
      noteTraffic(this.#queue, ...settledMail({ sender: held.message.sender, destination: path.destination }, settled, made))
    held.history.push(...made)
    if (warnAt !== undefined && applied.size > 0) held.warnAt = warnAt
    if (applied.size > 0) for (const one of sessions) KEEP_SESSION.held(this.#queue.records, one)
    this.#queue.outbox.keep(events.filter(({ recipient }) => applied.has(recipient)))
    return { removed: this.#mail.leaves(held, keepUntil), noticeDue: this.#noticeDue(held, warnAt) }
  }

  /** Whether this owner must send a notice. A notice, or the time of a warning, at another owner is reported there. */
  #noticeDue(held: HeldMessage, warnAt: QueueTime | null | undefined): boolean {
    const isDue = held.recipients.some(owesNotice)
    if (isDue || typeof warnAt === 'number') this.#owner.notice(held)
    return isDue && this.#owner.isHome(held)
  }

  async quarantine(message: MessageId, why: string): Promise<void> {
    const held = this.#queue.messages.get(message)
    if (held !== undefined) setAside(this.#queue, held, why, (one) => this.#owner.leases(one))
  }
}
