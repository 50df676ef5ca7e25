/** Mail as a client of the API submits it: an envelope with RFC 5322 content, or a composition in JSON. */
import type { Readable } from 'node:stream'
import MailComposer from 'nodemailer/lib/mail-composer'
import { z } from 'zod'
import { invalidPart, type InvalidPart } from '../../http/problem-details.ts'
import { isInternational } from '../../mail/address.ts'
import { NOTIFY_CONDITIONS, type Envelope, type EnvelopeRecipient } from '../../mail/envelope.ts'
import type { NamedTimes } from '../../mail/message-times.ts'
import { wholeNumber } from '../../queries/cursor.ts'
import { NAMED_TIME, namedTime } from '../../queries/named-time.ts'
import { mailboxesIn, parseMailbox } from '../../mail/mailbox-list.ts'
import { clipped, grouped } from '../../presentation/text.ts'
import { eventLoopTurn } from '../../system/event-loop.ts'
import { shown } from '../../system/shown-value.ts'

const address = z.string().max(1_000)
const addresses = z.union([address, z.array(address).max(10_000)])
const notify = z.union([z.literal('never'), z.array(z.enum(NOTIFY_CONDITIONS)).min(1)])
const ret = z.enum(['full', 'hdrs'])
export const envid = z
  .string()
  .regex(/^[\u0021-\u007e]{1,100}$/, 'expected 1 to 100 printable characters of ASCII, without blanks')
  .describe('ENVID of RFC 3461, without blanks')

/** Above the attempts that any policy makes in a lifetime. */
const MOST_ATTEMPTS = 1_000_000
const maximumAttempts = z.int().min(1).max(MOST_ATTEMPTS)
const MAXIMUM_ATTEMPTS = 'failed attempts after which the message is returned; the smallest of this and maximal_delivery_attempts counts'
const className = z.string().max(100).describe('class to ask for: one below that of the mail, or one that allows the client')
const times = {
  not_before: namedTime.optional().describe(`time before which no delivery begins: ${NAMED_TIME}`),
  expires: namedTime.optional().describe(`time at which undelivered mail is given up, and its sender told: ${NAMED_TIME}`),
}

/** The envelope in the query of a message/rfc822 submission. */
export const envelopeQuery = z.strictObject({
  from: address.optional().describe('envelope sender; empty or <> is the null sender'),
  to: addresses.optional().describe('recipient; repeated for several'),
  notify: z.string().optional().describe('never, or a list of success, failure, delay'),
  ret: ret.optional().describe('part of the message that a notice returns'),
  envid: envid.optional(),
  ...times,
  maximum_attempts: wholeNumber(1, MOST_ATTEMPTS).optional().describe(MAXIMUM_ATTEMPTS),
  class: className.optional(),
  partial: z.enum(['true', 'false']).optional().describe('true to queue the message for the valid recipients when others are invalid'),
})

/** A header value without line ends, which would begin another field. */
const line = z
  .string()
  .max(10_000)
  .regex(/^[^\r\n\0]*$/, 'expected one line')

const lines = z.union([line, z.array(line)])

const attachment = z.strictObject({
  name: line,
  type: line.regex(/^[\w.+-]+\/[\w.+-]+/, 'expected a media type such as text/plain').optional(),
  content: z.base64().describe('base64'),
})

/** Fields that other members make, so that a second one would contradict the first. */
const COMPOSED = /^(?:from|to|cc|bcc|reply-to|subject|mime-version|content-(?:type|transfer-encoding|disposition|id))$/i

const fieldName = z
  .string()
  .regex(/^[\u0021-\u0039\u003b-\u007e]+$/, 'expected the name of a header field')
  .refine(
    (name) => !COMPOSED.test(name),
    'expected a field that no other member makes: use from, to, cc, bcc, reply_to, subject, text, html and attachments',
  )

export const compositionShape = z.strictObject({
  envelope: z
    .strictObject({
      from: address,
      to: z.array(address).min(1).max(10_000),
      notify: notify.optional(),
      ret: ret.optional(),
      envid: envid.optional(),
    })
    .optional()
    .describe('from and to of the header when absent'),
  from: line.describe('author; the envelope sender without `envelope`'),
  to: lines.optional().describe('recipients: a list with commas, or an array with one address in each item'),
  cc: lines.optional(),
  bcc: lines.optional().describe('recipients that no header field names'),
  reply_to: line.optional(),
  subject: line.optional(),
  text: z.string().optional(),
  html: z.string().optional(),
  headers: z.record(fieldName, lines).optional().describe('further header fields, such as List-Unsubscribe'),
  attachments: z.array(attachment).max(1_000).optional(),
  notify: notify.optional().describe('for all recipients, without `envelope`'),
  ret: ret.optional().describe('without `envelope`'),
  envid: envid.optional().describe('ENVID of RFC 3461, without `envelope`'),
  ...times,
  maximum_attempts: maximumAttempts.optional().describe(MAXIMUM_ATTEMPTS),
  class: className.optional(),
  partial: z.boolean().optional().describe('true to queue the message for the valid recipients when others are invalid'),
})
type Composition = z.output<typeof compositionShape>

interface GivenAddress {
  /** Member or parameter of the request that has it. */
  readonly pointer: string
  readonly text: string
}

export interface GivenEnvelope extends NamedTimes, Pick<Envelope, 'maxAttempts' | 'class'> {
  readonly from: GivenAddress
  readonly to: readonly GivenAddress[]
  readonly notify?: EnvelopeRecipient['notify']
  readonly ret?: Envelope['ret']
  readonly envid?: string | undefined
}

const listOf = (given: string | readonly string[] | undefined): readonly string[] =>
  given === undefined ? [] : typeof given === 'string' ? [given] : given

/** Length to which an error cuts a value that it repeats. */
const LONGEST_QUOTED = 200

export const notAnAddress = ({ pointer, text }: GivenAddress): InvalidPart => ({
  pointer,
  detail: `${JSON.stringify(clipped(text, LONGEST_QUOTED))} is not an address: write one with its domain, such as ann@example.net, and commas between several`,
})

/** The texts of an envelope, for the digest of its request. */
export const envelopeTexts = ({ from, to, ...rest }: GivenEnvelope): object => ({
  from: from.text,
  to: to.map(({ text }) => text),
  ...rest,
})

/** The envelope of a query, or of the fields X-Envelope-From and X-Envelope-To. Throws Problem without a sender or recipient. */
export function queriedEnvelope(
  {
    from,
    to,
    notify: wishes,
    ret: returned,
    envid: id,
    not_before: release,
    expires,
    maximum_attempts: maxAttempts,
    class: asked,
  }: z.output<typeof envelopeQuery>,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): GivenEnvelope {
  const [field] = listOf(headers['x-envelope-from'])
  const sender = from ?? field
  const named = listOf(to)
  const recipients = named.length > 0 ? named : listOf(headers['x-envelope-to']).flatMap(mailboxesIn)
  if (sender === undefined) throw invalidPart('/from', 'name the envelope sender; empty for the null sender')
  if (recipients.length === 0) throw invalidPart('/to', 'name at least one recipient')
  const parsed = wishes === undefined ? undefined : notify.safeParse(wishes === 'never' ? wishes : wishes.split(','))
  if (parsed?.success === false) throw invalidPart('/notify', `expected never, or a list of success, failure, delay, got ${shown(wishes)}`)
  return {
    from: { pointer: '/from', text: sender },
    to: recipients.map((text) => ({ pointer: '/to', text })),
    notify: parsed?.data,
    ret: returned,
    envid: id,
    release,
    expires,
    maxAttempts,
    class: asked,
  }
}

/** Parsed between two turns of the event loop. */
const ITEMS_PER_TURN = 50
/** Maximum number of characters in the lists of recipients, whose parsing takes 1 µs for each. */
const MOST_CHARACTERS = 2_000_000

/** Addresses of a member: all of a comma-separated string, or one per item of an array. An item may be an empty group. */
async function addressesOf(pointer: string, given: string | readonly string[] | undefined): Promise<readonly GivenAddress[]> {
  if (typeof given === 'string') return mailboxesIn(given).map((text) => ({ pointer, text }))
  const parsed: GivenAddress[] = []
  for (const [index, item] of (given ?? []).entries()) {
    if (index > 0 && index % ITEMS_PER_TURN === 0) await eventLoopTurn()
    const listed = mailboxesIn(item)
    for (const text of listed.length > 1 ? [item] : listed) parsed.push({ pointer: `${pointer}/${index}`, text })
  }
  return parsed
}

/** The envelope of a composition. Rejects with Problem without a sender or recipient, and for lists that take long to parse. */
export async function composedEnvelope(composition: Composition): Promise<GivenEnvelope> {
  const { envelope, from, to, cc, bcc, not_before: release, expires, maximum_attempts: maxAttempts, class: asked } = composition
  const wishes = { notify: composition.notify, ret: composition.ret, envid: composition.envid }
  if (envelope !== undefined) {
    for (const [name, value] of Object.entries(wishes))
      if (value !== undefined) throw invalidPart(`/${name}`, 'name it in `envelope`, which is given')
    const recipients = envelope.to.map((text, index) => ({ pointer: `/envelope/to/${index}`, text }))
    return {
      ...envelope,
      from: { pointer: '/envelope/from', text: envelope.from },
      to: recipients,
      release,
      expires,
      maxAttempts,
      class: asked,
    }
  }
  const characters = [to, cc, bcc].flatMap(listOf).reduce((sum, { length }) => sum + length, 0)
  if (characters > MOST_CHARACTERS)
    throw invalidPart('/to', `expected at most ${grouped(MOST_CHARACTERS)} characters in all lists of recipients`)
  const recipients = [...(await addressesOf('/to', to)), ...(await addressesOf('/cc', cc)), ...(await addressesOf('/bcc', bcc))]
  const [sender] = await addressesOf('/from', from)
  if (sender === undefined || sender.text === '<>') throw invalidPart('/from', 'expected an address')
  if (recipients.length === 0) throw invalidPart('/to', 'name at least one recipient')
  return { from: sender, to: recipients, ...wishes, release, expires, maxAttempts, class: asked }
}

/** The envelope with parsed addresses, and the recipients that are no addresses. Throws Problem for an invalid sender. */
export function parsedEnvelope(
  { from, to, notify: wishes, ret: returned, envid: id, ...rest }: GivenEnvelope,
  { origin, most }: { readonly origin: string; readonly most: number },
): { readonly envelope: Envelope; readonly rejected: readonly GivenAddress[]; readonly pointers: ReadonlyMap<string, string> } {
  const bare = (text: string): string => text.trim().replace(/^<(.*)>$/, '$1')
  const sender = bare(from.text) === '' ? '' : parseMailbox(bare(from.text), origin)
  if (sender === undefined) throw invalidPart(from.pointer, notAnAddress(from).detail)
  const parsed = to.map((given) => ({ given, address: parseMailbox(bare(given.text), origin) }))
  const valid = new Map(parsed.flatMap(({ address: one }) => (one === undefined ? [] : [[one.toLowerCase(), one]])))
  if (valid.size > most) throw invalidPart('/to', `at most ${most} recipients (smtpd_recipient_limit)`)
  const rejected = parsed.flatMap(({ given, address: one }) => (one === undefined ? [given] : []))
  const recipients = [...valid.values()].map((one) => ({ address: one, notify: wishes }))
  const pointers = new Map(parsed.flatMap(({ given, address: one }) => (one === undefined ? [] : [[one, given.pointer]])))
  const smtputf8 = [sender, ...valid.values()].some(isInternational)
  return { envelope: { sender, recipients, ret: returned, envid: id, smtputf8, ...rest }, rejected, pointers }
}

/** The bytes of a composition, by nodemailer. Files and URLs are never read. `date` is that of a composition without the field Date. */
export function composed(
  { from, to, cc, reply_to: replyTo, subject, text, html, headers = {}, attachments = [] }: Composition,
  date: string,
): Readable {
  const dated = Object.keys(headers).some((name) => name.toLowerCase() === 'date') ? headers : { ...headers, Date: date }
  return new MailComposer({
    from,
    to: [...listOf(to)],
    cc: [...listOf(cc)],
    replyTo,
    subject,
    text,
    html,
    headers: Object.entries(dated).flatMap(([key, values]) => listOf(values).map((value) => ({ key, value }))),
    attachments: attachments.map(({ name, type, content }) => ({
      filename: name,
      contentType: type,
      content: Buffer.from(content, 'base64'),
    })),
    disableFileAccess: true,
    disableUrlAccess: true,
  })
    .compile()
    .createReadStream()
}
