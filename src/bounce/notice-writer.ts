/** Composes notices as queue entries: reads the original up to the limits, writes the notice and assigns its id. */
import { MailClasses } from '../config/values/mail-classes.ts'
import type { Config } from '../config/options.ts'
import type { WarningAges } from './warning-times.ts'
import type { Clock, Duration, QueueTime } from '../system/clock.ts'
import { isInternational } from '../mail/address.ts'
import type { EnvelopeRecipient } from '../mail/envelope.ts'
import { NOT_SHOWN, shownFieldsIn } from '../mail/mime/shown-fields.ts'
import type { Message, MessageId } from '../mail/message.ts'
import { inChunks } from '../store/chunks.ts'
import type { NewMessage } from '../store/new-message.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { Report } from '../store/recorded-outcomes.ts'
import { writeDsn, type Dsn } from './dsn.ts'
import type { DoubleBounce } from '../config/double-bounce.ts'
import { noticeRules, warningAges, type Notice, type NoticeRules } from './notice.ts'
import { readOriginal, type ReadPiece, type ReturnedOriginal } from './returned-original.ts'
import type { ReportingMta } from './dsn-status.ts'
import type { Templates } from './templates.ts'

/** The methods of the intake that notices use. */
export interface NoticeEntry {
  begin(): { readonly id: MessageId; readonly queueId: string; readonly arrivedAt: QueueTime }
  /** The message with its DKIM signatures. Rejects when a key cannot sign. */
  signed(message: Message, content: readonly Uint8Array[]): Promise<Message>
  /** Routes and schedules the notice; QueueStore.report commits it. */
  prepare(entry: {
    readonly message: Message
    readonly recipients: readonly EnvelopeRecipient[]
    readonly content: readonly Uint8Array[]
  }): PreparedMessage
}

/** A message that is routed and has room in the active queue. The caller commits it. */
export interface PreparedMessage {
  readonly entry: NewMessage
  /** Called when the message is committed. Its delivery may start. */
  committed(): void
  /** Called when the commit failed. Releases the room. */
  withdrawn(): void
}

/** Configuration of notices. */
export interface NoticeSettings {
  readonly rules: NoticeRules
  readonly reportingMta: ReportingMta
  readonly templates: Templates
  readonly threaded: boolean
  /** header_size_limit: maximum header returned by a notice, in bytes. */
  readonly headerLimit: number
  /** Whether Subject and From are kept (queue_index_headers). */
  readonly keepsTexts: boolean
  /** Ages at which delay warnings are sent (delay_warning_time). */
  readonly warningAges: WarningAges
  readonly classes: MailClasses
  /** returned_content_retention; 0 to keep no content. */
  readonly contentKeptFor: Duration
}

export const noticeSettings = (config: Config, templates: Templates, doubleBounce?: DoubleBounce): NoticeSettings => ({
  rules: noticeRules(config, doubleBounce),
  reportingMta: { myhostname: config.myhostname, myorigin: config.myorigin, mailName: config.mail_name },
  templates,
  threaded: config.enable_threaded_bounces,
  headerLimit: config.header_size_limit,
  keepsTexts: config.queue_index_headers,
  warningAges: warningAges(config),
  classes: new MailClasses(config.class, config.default_class),
  contentKeptFor: config.returned_content_retention,
})

/** The member `keepUntil` of a settlement or report; none when no content is kept. */
export const keptFrom = (now: QueueTime, { contentKeptFor }: Pick<NoticeSettings, 'contentKeptFor'>): Pick<Report, 'keepUntil'> =>
  contentKeptFor === 0 ? {} : { keepUntil: now + contentKeptFor }

interface NoticeWriterDeps {
  readonly store: Pick<QueueStore, 'readChunk'>
  readonly clock: Pick<Clock, 'wall' | 'zone'>
  readonly entry: NoticeEntry
  readonly settings: () => NoticeSettings
}

/** A composed notice, prepared for its commit. */
export interface WrittenNotice {
  readonly notice: Notice
  readonly prepared: PreparedMessage
}

/** Event of a notice about a message. */
export function noticeSent(message: Message, { notice, prepared: { entry } }: WrittenNotice) {
  const queued = { message: entry.message, recipients: entry.recipients.map(({ address }) => address) }
  return { kind: 'notice-sent', message, notice: notice.kind, to: notice.to, queued } as const
}

interface ComposedNotice {
  readonly notice: Notice
  readonly content: readonly Uint8Array[]
  readonly signed: Message
}

export class NoticeWriter {
  readonly #store: NoticeWriterDeps['store']
  readonly #clock: NoticeWriterDeps['clock']
  readonly #entry: NoticeEntry
  readonly #settings: () => NoticeSettings

  constructor({ store, clock, entry, settings }: NoticeWriterDeps) {
    this.#store = store
    this.#clock = clock
    this.#entry = entry
    this.#settings = settings
  }

  /** Composes the notices about one message. The caller commits them. */
  async write(message: Message, notices: readonly Notice[]): Promise<readonly WrittenNotice[]> {
    const whole = await this.#original(message, notices, 'full')
    const headers = await this.#original(message, notices, 'headers')
    const composed: ComposedNotice[] = []
    for (const notice of notices)
      composed.push(await this.#compose(notice, message, (notice.returns === 'full' ? whole : headers) ?? NOTHING))
    // Prepared together, after the last step that may fail, because a prepared notice has room in the active queue.
    return composed.map(({ notice, content, signed }) => ({
      notice,
      prepared: this.#entry.prepare({ message: signed, recipients: [{ address: notice.address }], content }),
    }))
  }

  /** Reads the original to return; undefined when no notice includes it. */
  async #original(message: Message, notices: readonly Notice[], returns: Notice['returns']): Promise<ReturnedOriginal | undefined> {
    if (notices.every((notice) => notice.returns !== returns)) return undefined
    const { rules, headerLimit } = this.#settings()
    const limits = { whole: returns === 'full', size: rules.sizeLimit, header: headerLimit }
    return readOriginal(this.#piecesOf(message), limits)
  }

  /** Reader of the original: first the prepended header fields, then the content. */
  #piecesOf({ contentId, prependedHeaders = '' }: Message): ReadPiece {
    if (prependedHeaders === '') return (index) => this.#store.readChunk(contentId, index)
    return async (index) => (index === 0 ? Buffer.from(prependedHeaders) : this.#store.readChunk(contentId, index - 1))
  }

  async #compose(notice: Notice, message: Message, original: ReturnedOriginal): Promise<ComposedNotice> {
    const { templates, reportingMta, threaded, keepsTexts, classes } = this.#settings()
    const { id, queueId, arrivedAt } = this.#entry.begin()
    const dsn = writeDsn({
      notice,
      message,
      original,
      reportingMta,
      threaded,
      queueId,
      template: templates[notice.kind],
      at: arrivedAt,
      clock: this.#clock,
    })
    const content = inChunks(dsn.content)
    const texts = keepsTexts ? shownFieldsIn(dsn.content) : NOT_SHOWN
    const queued = { ...envelopeOf(notice, dsn, { id, arrivedAt }), ...texts, class: classes.ofNotice(message.class) }
    return { notice, content, signed: await this.#entry.signed(queued, content) }
  }
}

const NOTHING: ReturnedOriginal = { text: undefined, whole: false }

/** The notice as a queued message. It needs SMTPUTF8 only when its own header or envelope does. */
const envelopeOf = (notice: Notice, dsn: Dsn, { id, arrivedAt }: { readonly id: MessageId; readonly arrivedAt: QueueTime }): Message => ({
  id,
  createdAt: arrivedAt,
  arrivedAt,
  sender: notice.from,
  size: dsn.content.byteLength,
  contentId: id,
  smtputf8: dsn.international || isInternational(notice.address) || isInternational(notice.from),
  bodyType: dsn.eightBit ? '8bitmime' : '7bit',
  messageId: dsn.messageId,
})
