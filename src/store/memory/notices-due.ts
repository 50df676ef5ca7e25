/** Due notices and delay warnings in memory. The call that queues a notice clears the mark of its recipient. */
import { isLive, type MessageId, type RecipientId } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { MessageWithNoticesDue, Report } from '../recorded-outcomes.ts'
import type { Intake } from './enqueue.ts'
import type { HeldMail } from './held-mail.ts'
import type { QueueOwner } from './queue-owner.ts'
import { snapshot, type HeldMessage, type HeldRecipient, type MemoryQueue } from './queue-state.ts'

/** True for a recipient whose sender is to get a notice. */
export const owesNotice = ({ noticeDue }: HeldRecipient): boolean => noticeDue !== undefined

interface NoticesDueParts {
  readonly queue: MemoryQueue
  readonly owner: QueueOwner
  readonly mail: HeldMail
  readonly intake: Intake
}

export class NoticesDue {
  readonly #queue: MemoryQueue
  readonly #owner: QueueOwner
  readonly #mail: HeldMail
  readonly #intake: Intake

  constructor({ queue, owner, mail, intake }: NoticesDueParts) {
    this.#queue = queue
    this.#owner = owner
    this.#mail = mail
    this.#intake = intake
  }

  async messagesWithNoticesDue(after: MessageId, limit: number): Promise<MessageWithNoticesDue[]> {
    const owing = [...this.#queue.messages.values()].filter(
      (held) => held.message.id > after && held.recipients.some(owesNotice) && this.#owner.isHome(held),
    )
    return owing
      .toSorted((a, b) => a.message.id - b.message.id)
      .slice(0, limit)
      .map((held) => this.#told(held, owesNotice))
  }

  async noticesDueOf(message: MessageId): Promise<MessageWithNoticesDue | undefined> {
    const held = this.#queue.messages.get(message)
    if (held?.recipients.some(owesNotice) !== true) return undefined
    return this.#told(
      held,
      held.recipients.some(({ noticeDue }) => noticeDue === 'delay') ? (one) => owesNotice(one) || isLive(one) : owesNotice,
    )
  }

  async claimWarnings(now: QueueTime, limit: number): Promise<MessageWithNoticesDue[]> {
    this.#queue.outbox.passed(now)
    const due = this.#mail.toBeWarned().filter(({ at }) => at <= now)
    return due
      .toSorted((a, b) => a.at - b.at || a.held.message.id - b.held.message.id)
      .slice(0, limit)
      .map(({ held }) => this.#told(held, isLive))
  }

  async postponeWarning(message: MessageId, warnAt: QueueTime | null): Promise<void> {
    const held = this.#queue.messages.get(message)
    if (held === undefined) return
    held.warnAt = warnAt
    if (warnAt !== null) this.#owner.notice(held)
  }

  async markDelayNoticeDue(message: MessageId, recipients: readonly RecipientId[]): Promise<void> {
    for (const one of this.#queue.messages.get(message)?.recipients ?? []) {
      if (recipients.includes(one.id) && isLive(one)) one.noticeDue ??= 'delay'
    }
  }

  async report({ message, noticesSettled, late, notices, warnings, warnAt, events, keepUntil }: Report) {
    const held = this.#queue.messages.get(message)
    if (held === undefined) return { removed: false, entered: false }
    const stillDue = held.recipients.filter((one) =>
      noticesSettled.some(({ recipient, noticeDue }) => recipient === one.id && noticeDue === one.noticeDue),
    )
    const areLate = held.recipients.filter((one) => isLive(one) && late.includes(one.id))
    const isEcho = noticesSettled.length === 0 && warnings <= held.warnings
    if (isEcho || stillDue.length < noticesSettled.length || areLate.length < late.length) return { removed: false, entered: false }
    for (const notice of notices) this.#intake.enter(notice)
    for (const one of stillDue) delete one.noticeDue
    held.warnings = warnings
    held.warnAt = warnAt
    this.#queue.outbox.keep(events)
    return { removed: this.#mail.leaves(held, keepUntil), entered: true }
  }

  #told(held: HeldMessage, wanted: (recipient: HeldRecipient) => boolean): MessageWithNoticesDue {
    const { message, warnings, recipients } = held
    const elsewhere = this.#owner.elsewhere(held)
    return { message, warnings, recipients: recipients.filter(wanted).map(snapshot), ...(elsewhere === undefined ? {} : { elsewhere }) }
  }
}
