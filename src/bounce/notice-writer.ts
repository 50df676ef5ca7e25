/**
 * Makes queue entries of notices: reads as much of the original as they return, writes them, and gives each its id.
 */
import type { Config } from '../config/options.ts'
import type { Clock, Instant } from '../mail/clock.ts'
import { isInternational } from '../mail/address.ts'
import type { EnvelopeRecipient } from '../mail/envelope.ts'
import { formatMailDate } from '../mail/mail-date.ts'
import type { Message, MessageId } from '../queue/message.ts'
import type { NewMessage, QueueStore } from '../queue/store.ts'
import { writeDsn, type Dsn } from './dsn.ts'
import { noticeRules, warningAges, type Notice, type NoticeRules } from './notice.ts'
import { readOriginal, type ReturnedOriginal } from './original.ts'
import type { Site } from './status-block.ts'
import type { Templates } from './templates.ts'

/** The way of a notice into the queue. */
export interface NoticeEntry {
  begin(): { readonly id: MessageId; readonly queueId: string; readonly arrivedAt: Instant }
  /** Routes and schedules it; `report` commits it. */
  prepare(entry: {
    readonly message: Message
    readonly recipients: readonly EnvelopeRecipient[]
    readonly content: readonly Uint8Array[]
  }): NewMessage
  /** It is on disk: its delivery may start. */
  entered(entry: NewMessage): void
  /** It could not be committed: whatever `prepare` reserved for it is free again. */
  withdrawn(entry: NewMessage): void
}

/** Everything about notices that the configuration says. */
export interface NoticeSettings {
  readonly rules: NoticeRules
  readonly site: Site
  readonly templates: Templates
  readonly threaded: boolean
  /** header_size_limit: how much header a notice returns, in bytes. */
  readonly headerLimit: number
  /** Ages at which the sender is warned, ascending. */
  readonly warningAges: readonly number[]
}

export const noticeSettings = (config: Config, templates: Templates): NoticeSettings => ({
  rules: noticeRules(config),
  site: { myhostname: config.myhostname, myorigin: config.myorigin, mailName: config.mail_name },
  templates,
  threaded: config.enable_threaded_bounces,
  headerLimit: config.header_size_limit,
  warningAges: warningAges(config),
})

export interface WriterParts {
  readonly store: Pick<QueueStore, 'readBody'>
  readonly clock: Pick<Clock, 'zone'>
  readonly entry: NoticeEntry
  readonly settings: () => NoticeSettings
}

/** A notice and the queue entry it became. */
export interface WrittenNotice {
  readonly notice: Notice
  readonly queueId: string
  readonly entry: NewMessage
}

export class NoticeWriter {
  readonly #parts: WriterParts

  constructor(parts: WriterParts) {
    this.#parts = parts
  }

  /** The notices about one message, prepared but not yet committed. */
  async write(message: Message, notices: readonly Notice[]): Promise<readonly WrittenNotice[]> {
    const whole = await this.#original(message, notices, 'full')
    const headers = await this.#original(message, notices, 'headers')
    return notices.map((notice) => this.#prepare(notice, message, (notice.returns === 'full' ? whole : headers) ?? NOTHING))
  }

  /** What comes back of the original; undefined when no notice returns that much. */
  async #original(message: Message, notices: readonly Notice[], returns: Notice['returns']): Promise<ReturnedOriginal | undefined> {
    if (notices.every((notice) => notice.returns !== returns)) return undefined
    const { rules, headerLimit } = this.#parts.settings()
    const limits = { whole: returns === 'full', size: rules.sizeLimit, header: headerLimit }
    return readOriginal((index) => this.#parts.store.readBody(message.body, index), limits)
  }

  #prepare(notice: Notice, message: Message, original: ReturnedOriginal): WrittenNotice {
    const { entry, settings, clock } = this.#parts
    const { templates, site, threaded } = settings()
    const { id, queueId, arrivedAt } = entry.begin()
    const dsn = writeDsn({
      notice,
      message,
      original,
      site,
      threaded,
      queueId,
      template: templates[notice.kind],
      at: arrivedAt,
      date: (at) => formatMailDate(at, clock.zone(at)),
    })
    const prepared = entry.prepare({
      message: envelopeOf(notice, dsn, { id, arrivedAt }),
      recipients: [{ address: notice.address }],
      content: [dsn.content],
    })
    return { notice, queueId, entry: prepared }
  }
}

const NOTHING: ReturnedOriginal = { text: undefined, whole: false }

/** The notice as a message of its own. It asks for SMTPUTF8 only where its own header or envelope needs it. */
const envelopeOf = (notice: Notice, dsn: Dsn, { id, arrivedAt }: { readonly id: MessageId; readonly arrivedAt: Instant }): Message => ({
  id,
  createdAt: arrivedAt,
  arrivedAt,
  sender: notice.from,
  size: dsn.content.byteLength,
  body: id,
  smtputf8: dsn.international || isInternational(notice.address) || isInternational(notice.from),
  bodyType: dsn.eightBit ? '8bitmime' : '7bit',
  messageId: dsn.messageId,
})
