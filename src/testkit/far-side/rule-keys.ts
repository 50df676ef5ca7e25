/**
 * Every key a rule can have: its kind, what it is for, and at which stages it means something. The reader of scripts,
 * its complaints and docs/faults.md come from this table.
 */
import * as is from '../../config/values.ts'
import type { Duration } from '../../mail/clock.ts'
import { CONNECT_FAULTS, COUNTED_BY, DNS_FAULTS, DROPS, SPOKEN_STAGES, STAGES, type FaultStage } from './rule.ts'

interface Key<T> {
  readonly kind: is.Kind<T>
  readonly about: string
  /** Where it means something; everywhere when absent. */
  readonly at?: readonly FaultStage[] | undefined
}

const key = <T>(kind: is.Kind<T>, about: string, at?: readonly FaultStage[]): Key<T> => ({ kind, about, at })

/** Reads a text with `parse`. */
const written = <T>(expected: string, parse: (text: string) => T | undefined): is.Kind<T> =>
  is.kind(expected, (given) => (typeof given === 'string' ? parse(given) : undefined))

/** The same, where a number may stand without quotes. */
const writtenOrNumber = <T>(expected: string, parse: (text: string) => T | undefined): is.Kind<T> =>
  is.kind(expected, (given) => (typeof given === 'string' || typeof given === 'number' ? parse(String(given)) : undefined))

const probability = writtenOrNumber('a probability from 0 to 1, or a percentage such as "30%"', (text) => {
  const number = text.endsWith('%') ? Number(text.slice(0, -1)) / 100 : Number(text)
  return text !== '' && number >= 0 && number <= 1 ? number : undefined
})

const reply = written('a reply such as "450 4.2.1 busy", lines separated by \\n, each with the same code', (text) => {
  const lines = text.split('\n')
  const code = lines[0]?.slice(0, 3) ?? ''
  const wellFormed = lines.every((line) => /^[2-5]\d\d(?:[ -][^\r]*)?$/.test(line) && line.startsWith(code))
  return wellFormed ? lines : undefined
})

const header = written('a header such as "Subject: *invoice*"', (text) => {
  const match = /^([!-9;-~]+):\s*(.*)$/.exec(text)
  return match === null ? undefined : { name: (match[1] ?? '').toLowerCase(), value: match[2] ?? '' }
})

/** Times in a span. */
export interface Rate {
  readonly count: number
  readonly per: Duration
}

export const rate = written<Rate>('a rate such as "10/1m"', (text) => {
  const [count, span = ''] = text.split('/')
  const [times, per] = [Number(count), is.parseDuration(span) ?? 0]
  return Number.isInteger(times) && times > 0 && per > 0 ? { count: times, per } : undefined
})

const flapping = written('how long it is bad and how long it is good, such as "2m/8m"', (text) => {
  const [bad = 0, good = 0] = text.split('/').map(is.parseDuration)
  return bad > 0 && good > 0 ? { bad, good } : undefined
})

const occasions = is.kind<readonly number[]>('a whole number of at least 1, or a list of such', (given) => {
  const readings = (Array.isArray(given) ? given : [given]).map(is.count(1))
  const times = readings.flatMap((reading) => ('value' in reading ? [reading.value] : []))
  return times.length > 0 && times.length === readings.length ? times : undefined
})

// oxlint-disable-next-line no-control-regex -- one character for each byte, controls included
const bytes = written('bytes: a text of characters up to \\u00ff', (text) => (/^[\u0000-\u00ff]*$/.test(text) ? text : undefined))

const FROM_EHLO = SPOKEN_STAGES.filter((stage) => stage !== 'greeting')
const FROM_MAIL = SPOKEN_STAGES.filter((stage) => !['greeting', 'ehlo', 'helo', 'starttls', 'handshake', 'auth'].includes(stage))
const FROM_RCPT = FROM_MAIL.filter((stage) => stage !== 'mail')
const WITH_COMMAND = SPOKEN_STAGES.filter((stage) => !['greeting', 'body', 'idle', 'handshake'].includes(stage))

export const KEYS = {
  at: key(is.oneOf(...STAGES), 'The stage at which the fault comes.'),

  domain: key(is.text, "The recipient's domain; before RCPT, a domain the host takes mail for. `.example.net`: all below it."),
  mx: key(is.text, 'The name of the host.'),
  client: key(is.text, 'The address of the client.'),
  helo: key(is.text, 'The name the client gave in EHLO.', FROM_EHLO),
  sender: key(is.text, 'The reverse-path; `""` is the null one.', FROM_MAIL),
  recipient: key(is.text, 'A forward-path.', FROM_RCPT),
  size_over: key(is.size, 'More bytes than this, as announced or counted.', FROM_MAIL),
  size_under: key(is.size, 'Fewer bytes than this.', FROM_MAIL),
  header: key(header, 'A header of the message.', ['end-of-data']),

  first: key(is.count(1), 'Only the first so many times; then all is well.'),
  nth: key(occasions, 'Only these times, counted from 1.'),
  every: key(is.count(1), 'Every so many times.'),
  per: key(is.oneOf(...COUNTED_BY), 'What is counted separately (default: nothing, the rule counts as a whole).'),
  probability: key(probability, 'With this probability, drawn from the seed.'),
  from: key(is.duration, 'Not before this time after the beginning.'),
  until: key(is.duration, 'Not at or after this time after the beginning.'),
  flapping: key(flapping, 'Bad for a while, good for a while, and again.'),
  greylist: key(is.duration, 'Until a triplet of client, sender and recipient has waited so long.', ['rcpt']),
  greylist_window: key(is.duration, 'Who comes back later than this begins anew (default 4h).', ['rcpt']),
  connections_over: key(is.count(), 'While more connections than this are open.'),
  rate: key(rate, 'When it happens more often than this.'),
  penalty: key(is.duration, 'How long the rule acts once the rate was exceeded (default: until it has fallen again).'),
  quota: key(is.count(), 'While the mailbox holds at least so many messages.', ['rcpt', 'end-of-data']),
  recipients_over: key(is.count(), 'For recipients beyond so many in one transaction.', ['rcpt']),

  dns: key(is.oneOf(...DNS_FAULTS), 'What DNS answers.', ['dns']),
  connect: key(is.oneOf(...CONNECT_FAULTS), 'What becomes of the connection.', ['connect']),
  reply: key(reply, 'The reply in place of the usual one; 421 also closes the connection.', SPOKEN_STAGES),
  raw: key(bytes, 'Bytes in place of the reply; line ends are not added.', SPOKEN_STAGES),
  drop: key(is.oneOf(...DROPS), 'The connection is closed, after the reply when one is given, else without.', SPOKEN_STAGES),
  stall: key(is.flag, 'Nothing is said any more, and the connection stays.', SPOKEN_STAGES),
  delay: key(is.duration, 'Silence before the reply.'),
  drip: key(is.duration, 'The pause between two bytes of the reply.', SPOKEN_STAGES),
  split: key(is.count(1), 'The reply comes in two pieces, the first of so many bytes.', SPOKEN_STAGES),
  gap: key(is.duration, 'The pause between the two pieces (default 0s).', SPOKEN_STAGES),
  repeat: key(is.count(1, 1000), 'The reply is sent so many times.', SPOKEN_STAGES),
  cut: key(is.count(0), 'Only so many bytes of the reply are sent; then the connection is closed.', SPOKEN_STAGES),
  early: key(is.flag, 'Sent together with the reply before it, when nobody has asked yet.', WITH_COMMAND),
  extensions: key(is.list, 'What EHLO offers, in place of the usual.', ['ehlo']),
  after: key(
    writtenOrNumber('bytes such as "10k", or a time such as "2s"', (text) => text),
    'Bytes of content (body) or time (idle) before it comes.',
    ['body', 'idle'],
  ),
  read_rate: key(is.size, 'Bytes of content read in a second.', ['body']),
  keep: key(is.flag, 'Whether the message is in the mailbox, whatever the client is told.', ['end-of-data']),
} as const satisfies Record<string, Key<unknown>>

export type KeyName = keyof typeof KEYS
type Read<K> = K extends Key<infer T> ? T : never

/** A rule's keys after reading, each of its kind. */
export type ReadKeys = { -readonly [K in KeyName]?: Read<(typeof KEYS)[K]> }

type Time = string | number

/** A rule as it is written: the same keys and values in TOML and in code. */
export interface RuleText {
  readonly at?: FaultStage
  readonly domain?: string
  readonly mx?: string
  readonly client?: string
  readonly helo?: string
  readonly sender?: string
  readonly recipient?: string
  readonly size_over?: string | number
  readonly size_under?: string | number
  readonly header?: string
  readonly first?: number
  readonly nth?: number | readonly number[]
  readonly every?: number
  readonly per?: (typeof COUNTED_BY)[number]
  readonly probability?: number | string
  readonly from?: Time
  readonly until?: Time
  readonly flapping?: string
  readonly greylist?: Time
  readonly greylist_window?: Time
  readonly connections_over?: number
  readonly rate?: string
  readonly penalty?: Time
  readonly quota?: number
  readonly recipients_over?: number
  readonly dns?: (typeof DNS_FAULTS)[number]
  readonly connect?: (typeof CONNECT_FAULTS)[number]
  readonly reply?: string
  readonly raw?: string
  readonly drop?: (typeof DROPS)[number]
  readonly stall?: boolean
  readonly delay?: Time
  readonly drip?: Time
  readonly split?: number
  readonly gap?: Time
  readonly repeat?: number
  readonly cut?: number
  readonly early?: boolean
  readonly extensions?: readonly string[]
  readonly after?: Time
  readonly read_rate?: string | number
  readonly keep?: boolean
}
