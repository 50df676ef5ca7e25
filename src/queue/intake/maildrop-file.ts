/**
 * The format of a maildrop file. The first line is JSON with the envelope and the content's length; the content follows, with
 * CRLF line ends. The file's mode shows whether the file is complete.
 *
 * Any local user may write a file, so files are validated like SMTP input (RFC 5321, RFC 3461). `sendmail` writes only valid
 * files.
 */
import { z } from 'zod'
import { isInternational } from '../../mail/address.ts'
import { parseAddress } from '../../mail/address-path.ts'
import { NOTIFY_CONDITIONS, type Envelope } from '../../mail/envelope.ts'

/** File modes: INCOMPLETE while the file is written, COMPLETE afterwards. */
export const INCOMPLETE = 0o600
export const COMPLETE = 0o644

/** Maximum number of recipients in a file. A message with more recipients is submitted in several files. */
const RECIPIENTS_PER_FILE = 1_000
/** Maximum length of the first line in bytes. */
export const ENVELOPE_LIMIT = 1024 * 1024

/** Text without control characters and line breaks. ORCPT must match, because it appears in the delivery status of notices. */
// oxlint-disable-next-line no-control-regex -- control characters are what this excludes
const PRINTABLE = /^[^\u0000-\u001f\u007f-\u009f\u2028\u2029\ufffd]+$/

const recipient = z.strictObject({
  address: z.string(),
  notify: z.union([z.literal('never'), z.array(z.enum(NOTIFY_CONDITIONS)).max(3)]).optional(),
  /** ORCPT as RFC 3461 §4.2 allows. */
  orcpt: z
    .string()
    .max(500)
    .regex(/^[a-z0-9][a-z0-9-]*;./)
    .regex(PRINTABLE)
    .optional(),
})

/** An instant of the wall clock, in ms: a span would begin when the file is read. */
const instant = z.strictObject({ kind: z.literal('instant'), at: z.int().nonnegative() })

const shape = z.strictObject({
  version: z.literal(1),
  sender: z.string(),
  recipients: z.array(recipient).min(1),
  ret: z.enum(['full', 'hdrs']).optional(),
  /** ENVID as RFC 3461 §4.4 allows. */
  envid: z
    .string()
    .regex(/^[ -~]{1,100}$/)
    .optional(),
  smtputf8: z.boolean().optional(),
  body: z.enum(['7bit', '8bitmime']).optional(),
  release: instant.optional(),
  expires: instant.optional(),
  maxAttempts: z.int().min(1).optional(),
  length: z.int().nonnegative(),
})

/** A file that was read and is not a valid submission. */
export class InvalidFile extends Error {
  override readonly name = 'InvalidFile'
}

/** Encodes the first line of a file, including its line end. */
export const encodeEnvelope = (envelope: Envelope, length: number): Buffer =>
  Buffer.from(`${JSON.stringify({ version: 1, ...envelope, length })}\n`)

/** Divides the recipients of a message so that each file is within its limits. */
export function splitEnvelope(envelope: Envelope): readonly Envelope[] {
  const { recipients } = envelope
  const fits = recipients.length <= RECIPIENTS_PER_FILE && encodeEnvelope(envelope, Number.MAX_SAFE_INTEGER).length <= ENVELOPE_LIMIT
  if (fits || recipients.length === 1) return [envelope]
  const middle = Math.ceil(recipients.length / 2)
  return [recipients.slice(0, middle), recipients.slice(middle)].flatMap((half) => splitEnvelope({ ...envelope, recipients: half }))
}

/** Decodes the first line of a file. Throws InvalidFile. */
export function decodeEnvelope(line: string): { readonly envelope: Envelope; readonly length: number } {
  const { version: _version, length, sender, recipients, ...rest } = parse(line)
  const accepted = new Map<string, Envelope['recipients'][number]>()
  for (const one of recipients) {
    const address = validAddress(one.address)
    const key = address.toLowerCase()
    if (!accepted.has(key)) accepted.set(key, { ...one, address })
  }
  const from = sender === '' ? '' : validAddress(sender)
  const smtputf8 = rest.smtputf8 === true || [from, ...accepted.keys()].some(isInternational)
  return { envelope: { ...rest, sender: from, recipients: [...accepted.values()], ...(smtputf8 ? { smtputf8 } : {}) }, length }
}

function parse(line: string): z.infer<typeof shape> {
  let json: unknown
  try {
    json = JSON.parse(line)
  } catch (cause) {
    throw new InvalidFile('its first line is no JSON', { cause })
  }
  if (isLongerThan(json, RECIPIENTS_PER_FILE)) throw new InvalidFile(`it has more than ${RECIPIENTS_PER_FILE} recipients`)
  const read = shape.safeParse(json)
  if (!read.success) throw new InvalidFile(`its envelope is malformed: ${read.error.issues[0]?.path.join('.')}`, { cause: read.error })
  return read.data
}

const isLongerThan = (json: unknown, limit: number): boolean =>
  typeof json === 'object' && json !== null && 'recipients' in json && Array.isArray(json.recipients) && json.recipients.length > limit

function validAddress(text: string): string {
  const address = parseAddress(text, '')
  if (address === undefined) throw new InvalidFile('an address of its envelope is malformed')
  return address
}

/** Validates content chunk by chunk: lines end in CRLF and there is no NUL (RFC 5321 §2.3.8, §4.5.2). Throws InvalidFile. */
export class ContentCheck {
  #endsInCr = false
  #endsInLf = true

  take(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    if (chunk.includes(0)) throw new InvalidFile('its content has a NUL')
    const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    for (let at = text.indexOf(LF); at >= 0; at = text.indexOf(LF, at + 1)) {
      if (at === 0 ? !this.#endsInCr : text[at - 1] !== CR) throw new InvalidFile('its content has a bare LF')
    }
    if (this.#endsInCr && text[0] !== LF) throw new InvalidFile('its content has a bare CR')
    for (let at = text.indexOf(CR); at >= 0; at = text.indexOf(CR, at + 1)) {
      if (at < text.length - 1 && text[at + 1] !== LF) throw new InvalidFile('its content has a bare CR')
    }
    this.#endsInCr = text.at(-1) === CR
    this.#endsInLf = text.at(-1) === LF
  }

  end(): void {
    if (!this.#endsInLf) throw new InvalidFile('its last line has no end')
  }
}

const LF = 0x0a
const CR = 0x0d
