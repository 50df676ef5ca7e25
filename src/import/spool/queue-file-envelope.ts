/** Reads the records before and after the content of a queue file of Postfix. Pure. */
import type { Notify, Ret } from '../../mail/envelope.ts'
import { SECOND } from '../../system/clock.ts'
import type { FileKind, PostfixMessage, PostfixRecipient } from './postfix-message.ts'
import { UnusableQueueFile, type QueueRecord } from './queue-records.ts'

/** Records without a meaning for other mail systems: inspection, milter counts, priority, delays, flags, padding. */
const IGNORED = new Set(['I', 'P', 'd', 'f', 'm', 'r', 'e', 'c', 'W', 'O', '/', 'w'])

/** Records that request an unsupported feature. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  L: 'it waits for a content filter: let Postfix deliver it',
  V: 'it asks for VERP: let Postfix deliver it',
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** ORCPT and ENVID as RFC 3461 allows them, decoded. */
const ORCPT = /^[a-z0-9][a-z0-9-]*;[^\p{Cc}]+$/iu
const ENVID = /^[ -~]+$/

/** Bits of the SMTPUTF8 flags (Postfix smtputf8.h): requested by the client, or found in header or envelope. */
const REQUESTED = 1
const FOUND = 0x0e

/** Bits of notify_flags and ret_flags (Postfix dsn_mask.h). */
const NEVER = 1
const NOTICES = [
  ['success', 2],
  ['failure', 4],
  ['delay', 8],
] as const
const RETS: Readonly<Record<string, Ret | undefined>> = { 0: undefined, 1: 'full', 2: 'hdrs' }

/** The values of a size record. */
interface Sizes {
  readonly content: number
  readonly contentStart: number
  readonly recipients: number
  readonly smtputf8: number
}

interface Wishes {
  readonly notify?: Notify | undefined
  readonly orcpt?: string | undefined
}

export class EnvelopeReader {
  readonly #kind: FileKind
  readonly #recipients: PostfixRecipient[] = []
  #sizes: Sizes | null = null
  #arrival: string | null = null
  #created: number | null = null
  #sender: string | null = null
  #fullName: string | null = null
  #redirect: string | null = null
  #ret: Ret | undefined
  #envid: string | undefined
  #smtputf8 = 0
  #isWarned = false
  #wishes: Wishes = {}
  #contentStart = 0
  /** False when a pointer leads to another part, so that the recorded sizes no longer apply. */
  #isInOrder = true
  #canceled = 0

  constructor(kind: FileKind) {
    this.#kind = kind
  }

  take(record: QueueRecord): void {
    const { type } = record
    const asked = UNSUPPORTED[type]
    if (asked !== undefined) throw new UnusableQueueFile(asked)
    if (record.isMoved) this.#isInOrder = false
    switch (type) {
      case 'C':
        return void (this.#sizes = sizesOf(once(this.#sizes, record)))
      case 'T':
        return void (this.#arrival = arrivalOf(once(this.#arrival, record)))
      case 'S':
        return void (this.#sender = textOf(once(this.#sender, record)))
      case 'F':
        return void (this.#fullName = textOf(record))
      case '>':
        return void (this.#redirect = textOf(record))
      case 'K':
        return void (this.#isWarned = true)
      case 'A':
        return this.#takeAttribute(textOf(record))
      case 'R':
      case 'D':
        return this.#takeRecipient(record)
    }
    if (type === '/') this.#canceled++
    if (!this.#takeWish(record) && !IGNORED.has(type)) throw new UnusableQueueFile(`it has a record of the type ${JSON.stringify(type)}`)
  }

  /** Reads a record by which older versions of Postfix store what is an attribute today. */
  #takeWish(record: QueueRecord): boolean {
    const name = { y: 'ret_flags', i: 'envelope_id', o: 'dsn_orig_rcpt', n: 'notify_flags' }[record.type]
    if (name !== undefined) this.#takeAttribute(`${name}=${textOf(record)}`)
    return name !== undefined
  }

  #takeAttribute(text: string): void {
    const equals = text.indexOf('=')
    if (equals <= 0) throw new UnusableQueueFile('an attribute has no name')
    const value = text.slice(equals + 1)
    switch (text.slice(0, equals)) {
      case 'notify_flags':
        return void (this.#wishes = { ...this.#wishes, notify: notifyOf(value) })
      case 'dsn_orig_rcpt':
        if (!ORCPT.test(value)) throw new UnusableQueueFile('an ORCPT is malformed')
        return void (this.#wishes = { ...this.#wishes, orcpt: value })
      case 'ret_flags':
        if (!(value in RETS)) throw new UnusableQueueFile('RET is malformed')
        return void (this.#ret = RETS[value])
      case 'envelope_id':
        if (!ENVID.test(value)) throw new UnusableQueueFile('ENVID is malformed')
        return void (this.#envid = value)
      case 'create_time':
        return void (this.#created = numberOf(value, 'time of creation'))
      case 'smtputf8':
        return void (this.#smtputf8 = numberOf(value, 'SMTPUTF8 flag'))
    }
  }

  #takeRecipient(record: QueueRecord): void {
    const address = textOf(record)
    if (address === '') throw new UnusableQueueFile('a recipient is empty')
    const { notify, orcpt } = this.#wishes
    this.#recipients.push({ address, notify, orcpt, isDone: record.type === 'D', offset: record.at })
    this.#wishes = {}
  }

  beginContent({ end, isMoved }: QueueRecord): void {
    if (isMoved) this.#isInOrder = false
    this.#contentStart = end
    if (this.#sizes !== null && this.#sizes.contentStart !== end && this.#isInOrder) {
      throw new UnusableQueueFile('its content begins at another place than its size record states')
    }
  }

  endContent({ at, isMoved }: QueueRecord): void {
    if (isMoved) this.#isInOrder = false
    if (this.#sizes !== null && this.#isInOrder && this.#sizes.content !== at - this.#contentStart) {
      throw new UnusableQueueFile('its content has another size than its size record states')
    }
  }

  end(): Omit<PostfixMessage, 'content'> {
    const [arrival, sender, sizes] = [this.#arrival, this.#sender, this.#sizes]
    if (arrival === null) throw new UnusableQueueFile('it has no time of arrival')
    if (sender === null) throw new UnusableQueueFile('it has no sender')
    if (this.#kind === 'queued' && sizes === null) throw new UnusableQueueFile('it has no size record')
    const missing = sizes === null || !this.#isInOrder ? 0 : sizes.recipients - this.#recipients.length
    if (missing < 0 || missing > this.#canceled) {
      throw new UnusableQueueFile('it has another number of recipients than its size record states')
    }
    const arrivedAt = Math.floor(Number(arrival) * SECOND)
    return {
      arrival,
      arrivedAt,
      createdAt: this.#created === null ? arrivedAt : Math.max(arrivedAt, this.#created * SECOND),
      sender,
      fullName: this.#fullName,
      recipients: this.#redirected(),
      ret: this.#ret,
      envid: this.#envid,
      smtputf8: needsSmtputf8(this.#smtputf8 | (sizes?.smtputf8 ?? 0)),
      isWarned: this.#isWarned,
    }
  }

  /** The recipients. With a REDIRECT action, its recipient replaces all that remain. */
  #redirected(): readonly PostfixRecipient[] {
    const first = this.#recipients.find(({ isDone }) => !isDone)
    if (this.#redirect === null || first === undefined) return this.#recipients
    const done = this.#recipients.filter(({ isDone }) => isDone)
    return [...done, { ...first, address: this.#redirect }]
  }
}

/** Returns the record. Throws when `before` shows an earlier record of the same value. */
function once(before: unknown, record: QueueRecord): QueueRecord {
  if (before === null) return record
  throw new UnusableQueueFile(`it has two records of the type ${JSON.stringify(record.type)}`)
}

function textOf({ data }: QueueRecord): string {
  try {
    const text = UTF8.decode(data)
    // oxlint-disable-next-line no-control-regex -- control characters are what this refuses
    if (!/[\u0000-\u001f\u007f]/.test(text)) return text
  } catch (cause) {
    throw new UnusableQueueFile('its envelope is not UTF-8', { cause })
  }
  throw new UnusableQueueFile('its envelope has control characters')
}

function numberOf(text: string, what: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new UnusableQueueFile(`its ${what} is malformed`)
  return Number(text)
}

/** Seconds and microseconds, as `1795365167.442771`. */
function arrivalOf(record: QueueRecord): string {
  const match = /^(\d{1,12})(?: (\d{1,6}))?$/.exec(textOf(record))
  if (match === null) throw new UnusableQueueFile('its time of arrival is malformed')
  return `${match[1]}.${(match[2] ?? '').padStart(6, '0')}`
}

/** Content size, start of the content, number of recipients, options, size without prepended fields, and SMTPUTF8 flags. */
function sizesOf(record: QueueRecord): Sizes {
  const numbers = textOf(record).trim().split(/ +/)
  if (numbers.length < 3 || !numbers.every((number) => /^-?\d{1,15}$/.test(number))) {
    throw new UnusableQueueFile('its size record is malformed')
  }
  const [content = 0, contentStart = 0, recipients = 0, , , smtputf8 = 0] = numbers.map(Number)
  return { content, contentStart, recipients, smtputf8 }
}

/** As Postfix: true when the client has requested SMTPUTF8 and the message needs it. */
const needsSmtputf8 = (flags: number): boolean => (flags & REQUESTED) !== 0 && (flags & FOUND) !== 0

function notifyOf(text: string): Notify | undefined {
  const flags = numberOf(text, 'NOTIFY')
  if (flags === 0) return undefined
  if (flags === NEVER) return 'never'
  const notices = NOTICES.filter(([, bit]) => (flags & bit) !== 0)
  if (notices.reduce((sum, [, bit]) => sum + bit, 0) !== flags) throw new UnusableQueueFile('its NOTIFY is malformed')
  return notices.map(([name]) => name)
}
