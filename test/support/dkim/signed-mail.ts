/** Generated mail: accepted, queued, delivered by SMTP, and changed afterwards. */
import fc from 'fast-check'
import { DataStream } from '../../../src/smtpd/stream/data-stream.ts'
import { createWorld, type World } from '../../../src/testkit/index.ts'
import { BOTH_KEYS } from './dkim-keys.ts'

const LATIN = (text: string): Buffer => Buffer.from(text, 'latin1')

/**
 * Text of a line: words, runs of blanks, UTF-8 and other octets above 127, stray CR, dots. No NUL, at which opendkim stops to read a
 * file.
 */
const piece = fc.oneof(
  { weight: 6, arbitrary: fc.stringMatching(/^[abcXYZ 019.,:;=<>@"()\\-]{0,40}$/) },
  fc.constantFrom(' ', '  ', '\t', ' \t ', '.', '..', '\r', 'From ', '=20', '\u00c3\u00a9', '\u00c3\u00a0', '\u00e9', '\u00a0'),
  fc.integer({ min: 900, max: 2_600 }).map((length) => 'y'.repeat(length)),
)
const line = fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.join(''))

const WORDS = ['From', 'To', 'Cc', 'Subject', 'Date', 'Message-ID', 'Reply-To', 'Sender', 'References', 'In-Reply-To', 'MIME-Version']
const NAMES = [
  ...WORDS,
  'Content-Type',
  'Content-Transfer-Encoding',
  'List-Id',
  'List-Unsubscribe-Post',
  'Resent-To',
  'X-Other',
  'subject',
  'TO',
]
const colon = fc.constantFrom(':', ': ', ' :', ' \t: ', ':\t')
/** A field without a stray CR at its start, where it would begin another field. */
const field = fc
  .tuple(fc.constantFrom(...NAMES.slice(1)), colon, fc.array(line, { minLength: 1, maxLength: 3 }))
  .map(([name, separator, lines]) => `${name}${separator}${lines.map((text) => text.replaceAll('\r', '')).join('\r\n ')}`)

const body = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom(null, '', '\r\n', '\r\n\r\n', ' \r\n\t\r\n', 'no end') },
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.array(fc.tuple(line, fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r\n\r\n', ' \r\n')), { maxLength: 12 }), line)
      .map(([lines, last]) => lines.flat().join('') + last),
  },
)

/** A message as a client sends it, one character per octet; header and body may be anything but its one From. */
export const rawMessage = fc.tuple(fc.array(field, { maxLength: 12 }), fc.nat(12), body).map(([fields, place, text]) => {
  const from = 'From: App \u00c3\u00a0 <app@us.example>'
  const header = [...fields.slice(0, place), from, ...fields.slice(place)].join('\r\n')
  return text === null ? `${header}\r\n` : `${header}\r\n\r\n${text}`
})

/** The content as the SMTP server passes it on: lines end in CRLF. */
function received(raw: string): readonly Uint8Array[] {
  const stuffed = raw.replaceAll(/(^|\n)\./g, '$1..')
  const { pieces } = new DataStream().read(LATIN(`${stuffed}${stuffed.endsWith('\n') ? '' : '\r\n'}.\r\n`))
  return pieces
}

/** Submits the messages, each for an address of its own, and resolves with the addresses. */
async function submit(world: World, messages: readonly string[]): Promise<readonly string[]> {
  const addresses = messages.map((_, i) => `a${i}@far.example`)
  for (const [i, raw] of messages.entries()) {
    const envelope = { sender: 'app@us.example', recipients: [{ address: addresses[i] ?? '' }] }
    const acceptance = await world.relay.acceptor.accept({ envelope, client: { uid: 0 }, content: received(raw) })
    if (acceptance.kind !== 'queued') throw new Error(`message ${i} was not queued: ${JSON.stringify(acceptance)}`)
  }
  return addresses
}

/**
 * The copies of each message that a remote server gets in three attempts: it refuses two of them with 451, and the relay is killed
 * and started again in between. `smtp_generic_maps` change From.
 */
export async function deliveredAgain(messages: readonly string[], directory: string): Promise<readonly Buffer[]> {
  const config = { dkim: { 'us.example': { keys: BOTH_KEYS } }, smtp_generic_maps: { 'app@us.example': 'out@us.example' } }
  await using world = await createWorld({ config, store: { directory } })
  world.rule({ domain: 'far.example', at: 'end-of-data', reply: '451 4.3.0 later', keep: true, first: 2, per: 'recipient' })
  const addresses = await submit(world, messages)
  await world.advance('6m')
  await world.crash()
  await world.settle()
  return addresses.flatMap((address) =>
    world
      .mailbox(address)
      .mails()
      .map(({ raw }) => Buffer.from(raw)),
  )
}

/** The messages as a remote server gets them. */
export async function delivered(messages: readonly string[]): Promise<readonly Buffer[]> {
  await using world = await createWorld({ config: { dkim: { 'us.example': { keys: BOTH_KEYS } }, message_size_limit: 50_000_000 } })
  const addresses = await submit(world, messages)
  await world.settle()
  return addresses.map((address) => Buffer.from(world.mailbox(address).mails()[0]?.raw ?? ''))
}

/** A message with an empty line after its header. */
const separated = (text: string): string => (text.includes('\r\n\r\n') ? text : `${text}\r\n`)

/** Changes that make every signature invalid. Each gets the text of a message and returns the changed one. */
export const MUTATIONS: Readonly<Record<string, (text: string) => string>> = {
  'a second From': (text) => `From: eve@us.example\r\n${text}`,
  'a Subject that is added': (text) => `Subject: act now\r\n${text}`,
  'a To that is added': (text) => `To: eve@us.example\r\n${text}`,
  'a Cc that is added': (text) => `Cc: eve@us.example\r\n${text}`,
  'a Reply-To that is added': (text) => `Reply-To: eve@us.example\r\n${text}`,
  'a Date that is added': (text) => `Date: Thu, 1 Jan 2026 00:00:00 +0000\r\n${text}`,
  'another From': (text) => text.replace('app@us.example', 'eve@us.example'),
  'a From that is removed': (text) => text.replace(/^From: .*\r\n(?:[ \t].*\r\n)*/m, ''),
  'a line after the body': (text) => `${separated(text)}act now\r\n`,
  'a line before the body': (text) => separated(text).replace('\r\n\r\n', '\r\n\r\nact now\r\n'),
  'another letter of the body': (given) => {
    const text = separated(given)
    const at = text.indexOf('\r\n\r\n') + 4
    const letter = text.slice(at).search(/[a-z]/)
    return letter < 0 ? `${text}x\r\n` : `${text.slice(0, at + letter)}_${text.slice(at + letter + 1)}`
  },
  'another t=': (text) => text.replaceAll(/(\r\n\tt=)(\d+)/g, (_, start: string, time: string) => `${start}${Number(time) + 1}`),
}

/** Changes that mailing lists and relays make, which keep every signature valid. */
export const HARMLESS: Readonly<Record<string, (text: string) => string>> = {
  Received: (text) => `Received: from a by b; Thu, 1 Jan 2026 00:00:00 +0000\r\n${text}`,
  'List-Id and Sender': (text) => `List-Id: <list.example>\r\nSender: list@list.example\r\n${text}`,
  'more empty lines at the end': (text) => `${separated(text)}\r\n\r\n`,
}
