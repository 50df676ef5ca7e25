/**
 * Keys of a rule: the kind of value, the meaning, and the stages at which each is valid. The script reader, its error messages
 * and docs/faults.md are derived from this table.
 */
import * as is from '../../config/values/values.ts'
import type { Duration } from '../../system/clock.ts'
import { parseDuration } from '../../system/duration.ts'
import { CONNECT_FAULTS, COUNTED_BY, DNS_FAULTS, DROPS, SPOKEN_STAGES, STAGES, type FaultStage } from './rule.ts'

interface Key<T> {
  readonly kind: is.Kind<T>
  readonly about: string
  /** Stages at which the key is valid; all stages when absent. */
  readonly at?: readonly FaultStage[] | undefined
  /** True for a key that has an effect by itself. A rule needs one of them, or a condition. */
  readonly acts?: true
  /** For a condition: the reply of a rule that has it and no action. Conditions exclude each other. */
  readonly refusal?: string
  /** Keys of which the rule has one too. */
  readonly needs?: readonly (keyof RuleText)[]
  /** Keys that the rule may not have besides. */
  readonly excludes?: readonly (keyof RuleText)[]
  /** Stage of a rule without `at` that has the key. A key that is valid at one stage implies that one. */
  readonly implies?: FaultStage
}

type Uses = Omit<Key<never>, 'kind' | 'about' | 'at'>

const key = <T>(kind: is.Kind<T>, about: string, at?: readonly FaultStage[], uses: Uses = {}): Key<T> => ({ kind, about, at, ...uses })

const ACTS: Uses = { acts: true }

/** Kind of a value that `parse` reads from a text. */
const written = <T>(expected: string, parse: (text: string) => T | undefined): is.Kind<T> =>
  is.kind(expected, (given) => (typeof given === 'string' ? parse(given) : undefined))

/** Kind of a value that `parse` reads from a text or a number. */
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

/** A rate: number of occasions per span in milliseconds. */
export interface Rate {
  readonly count: number
  readonly per: Duration
}

export const rate = written<Rate>('a rate such as "10/1m"', (text) => {
  const [count, span = ''] = text.split('/')
  const [times, per] = [Number(count), parseDuration(span) ?? 0]
  return Number.isInteger(times) && times > 0 && per > 0 ? { count: times, per } : undefined
})

const flapping = written('the lengths of the bad and the good phase, such as "2m/8m"', (text) => {
  const [bad = 0, good = 0] = text.split('/').map(parseDuration)
  return bad > 0 && good > 0 ? { bad, good } : undefined
})

const occasions = is.kind<readonly number[]>('a whole number of at least 1, or a list of such numbers', (given) => {
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
  at: key(is.oneOf(...STAGES), 'Stage at which the fault occurs.'),

  domain: key(
    is.text,
    'Domain of the recipient; before RCPT, a domain that the host accepts mail for. `.example.net`: all its subdomains.',
  ),
  mx: key(is.text, 'Name of the host.'),
  client: key(is.text, 'Address of the client.'),
  helo: key(is.text, 'Name that the client gave in EHLO.', FROM_EHLO),
  sender: key(is.text, 'Reverse-path; `""` is the null one.', FROM_MAIL),
  recipient: key(is.text, 'Forward-path.', FROM_RCPT),
  size_over: key(is.size, 'Messages of more bytes than this, as announced or counted.', FROM_MAIL),
  size_under: key(is.size, 'Messages of fewer bytes than this.', FROM_MAIL),
  header: key(header, 'Header field of the message.', ['end-of-data']),

  first: key(is.count(1), 'The first N occasions only.'),
  nth: key(occasions, 'These occasions only, counted from 1.', undefined, { excludes: ['first'] }),
  every: key(is.count(1), 'Every N-th occasion.', undefined, { excludes: ['first', 'nth'] }),
  per: key(is.oneOf(...COUNTED_BY), 'Counts occasions separately by this (default: `rule`, all together).'),
  probability: key(probability, 'Probability, drawn from the seed.'),
  from: key(is.duration, 'Not before this time after the start.'),
  until: key(is.duration, 'Not at or after this time after the start.'),
  flapping: key(flapping, 'Alternates between acting and not acting.'),
  greylist: key(is.duration, 'Until a triplet of client, sender and recipient has waited this long.', ['rcpt'], {
    refusal: '451 4.7.1 Greylisted, please try again later',
  }),
  greylist_window: key(is.duration, 'A triplet that returns later than this is treated as new (default 4h).', ['rcpt'], {
    needs: ['greylist'],
  }),
  connections_over: key(is.count(), 'While more connections than this are open.', undefined, {
    refusal: '421 4.7.0 Too many connections',
    implies: 'greeting',
  }),
  rate: key(rate, 'Occasions above this rate.', undefined, { refusal: '421 4.7.0 Too much mail, slow down', implies: 'greeting' }),
  penalty: key(is.duration, 'Time that the rule acts once the rate is exceeded (default: until it has fallen again).', undefined, {
    needs: ['rate'],
  }),
  quota: key(is.count(), 'While the mailbox holds at least this many messages.', ['rcpt', 'end-of-data'], {
    refusal: '452 4.2.2 Mailbox full',
    implies: 'rcpt',
  }),
  recipients_over: key(is.count(), 'Recipients beyond this number in one transaction.', ['rcpt'], {
    refusal: '452 4.5.3 Too many recipients',
  }),

  dns: key(is.oneOf(...DNS_FAULTS), 'Result of the look-up.', ['dns'], ACTS),
  connect: key(is.oneOf(...CONNECT_FAULTS), 'Result of the connection.', ['connect'], ACTS),
  reply: key(reply, 'Reply in place of the default one; 421 also closes the connection.', SPOKEN_STAGES, ACTS),
  raw: key(bytes, 'Bytes in place of the reply; line ends are not added.', SPOKEN_STAGES, { ...ACTS, excludes: ['reply'] }),
  drop: key(is.oneOf(...DROPS), 'Closes the connection, after `reply` if it is given, else without a reply.', SPOKEN_STAGES, ACTS),
  stall: key(is.flag, 'Sends no more replies and keeps the connection open.', SPOKEN_STAGES, {
    ...ACTS,
    excludes: ['reply', 'raw', 'drop', 'cut'],
  }),
  delay: key(is.duration, 'Pause before the reply.', undefined, ACTS),
  drip: key(is.duration, 'Pause between two bytes of the reply.', SPOKEN_STAGES, ACTS),
  split: key(is.count(1), 'Sends the reply in two pieces, the first of this many bytes.', SPOKEN_STAGES, { ...ACTS, excludes: ['drip'] }),
  gap: key(is.duration, 'Pause between the two pieces (default 0s).', SPOKEN_STAGES, { needs: ['split'] }),
  repeat: key(is.count(1, 1000), 'Number of times that the reply is sent.', SPOKEN_STAGES, ACTS),
  cut: key(is.count(0), 'Sends only this many bytes of the reply, then closes the connection.', SPOKEN_STAGES, ACTS),
  early: key(is.flag, 'Sends the reply together with the one before, ahead of the command.', WITH_COMMAND, { needs: ['reply', 'raw'] }),
  extensions: key(is.list, 'Extensions that EHLO offers, in place of the default ones.', ['ehlo'], ACTS),
  after: key(
    writtenOrNumber('bytes such as "10k", or a time such as "2s"', (text) => text),
    'Bytes of content (body) or time (idle) before the fault.',
    ['body', 'idle'],
  ),
  read_rate: key(is.size, 'Bytes of content read per second.', ['body'], ACTS),
  keep: key(is.flag, 'Whether the message enters the mailbox, whatever the reply is.', ['end-of-data'], ACTS),
} as const satisfies Record<keyof RuleText, Key<unknown>>

export type KeyName = keyof typeof KEYS

/** A key without the type of its value. */
export const usesOf = (name: KeyName): Uses => KEYS[name]

type Read<K> = K extends Key<infer T> ? T : never

export type ReadKeys = { -readonly [K in KeyName]?: Read<(typeof KEYS)[K]> }

type Time = string | number

/** A rule as written in TOML or in code; docs/faults.md explains the keys. Times are `'5m'` or seconds. */
export interface RuleText {
  /** Stage at which the fault occurs. */
  readonly at?: FaultStage
  /** Domain of the recipient; before RCPT, a domain that the host accepts mail for. `.example.net`: all its subdomains. */
  readonly domain?: string
  /** Name of the host. */
  readonly mx?: string
  /** Address of the client. */
  readonly client?: string
  /** Name that the client gave in EHLO. At: ehlo, helo, starttls, handshake, auth, mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly helo?: string
  /** Reverse-path; `""` is the null one. At: mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly sender?: string
  /** Forward-path. At: rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly recipient?: string
  /** Messages of more bytes than this, as announced or counted. A size such as `'10M'`, or a number of bytes. At: mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly size_over?: string | number
  /** Messages of fewer bytes than this. A size such as `'10M'`, or a number of bytes. At: mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly size_under?: string | number
  /** Header field of the message. At: end-of-data. */
  readonly header?: string
  /** The first N occasions only. */
  readonly first?: number
  /** These occasions only, counted from 1. */
  readonly nth?: number | readonly number[]
  /** Every N-th occasion. */
  readonly every?: number
  /** Counts occasions separately by this (default: `rule`, all together). */
  readonly per?: (typeof COUNTED_BY)[number]
  /** Probability, drawn from the seed. */
  readonly probability?: number | string
  /** Not before this time after the start. A time such as `'5m'` or `'2d'`, or a number of seconds. */
  readonly from?: Time
  /** Not at or after this time after the start. A time such as `'5m'` or `'2d'`, or a number of seconds. */
  readonly until?: Time
  /** Alternates between acting and not acting. */
  readonly flapping?: string
  /** Until a triplet of client, sender and recipient has waited this long. A time such as `'5m'` or `'2d'`, or a number of seconds. At: rcpt. */
  readonly greylist?: Time
  /** A triplet that returns later than this is treated as new (default 4h). A time such as `'5m'` or `'2d'`, or a number of seconds. At: rcpt. */
  readonly greylist_window?: Time
  /** While more connections than this are open. */
  readonly connections_over?: number
  /** Occasions above this rate. */
  readonly rate?: string
  /** Time that the rule acts once the rate is exceeded (default: until it has fallen again). A time such as `'5m'` or `'2d'`, or a number of seconds. */
  readonly penalty?: Time
  /** While the mailbox holds at least this many messages. At: rcpt, end-of-data. */
  readonly quota?: number
  /** Recipients beyond this number in one transaction. At: rcpt. */
  readonly recipients_over?: number
  /** Result of the look-up. At: dns. */
  readonly dns?: (typeof DNS_FAULTS)[number]
  /** Result of the connection. At: connect. */
  readonly connect?: (typeof CONNECT_FAULTS)[number]
  /** Reply in place of the default one; 421 also closes the connection. At: greeting, ehlo, helo, starttls, handshake, auth, mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly reply?: string
  /** Bytes in place of the reply; line ends are not added. At: greeting, ehlo, helo, starttls, handshake, auth, mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly raw?: string
  /** Closes the connection, after `reply` if it is given, else without a reply. At: greeting, ehlo, helo, starttls, handshake, auth, mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly drop?: (typeof DROPS)[number]
  /** Sends no more replies and keeps the connection open. At: greeting, ehlo, helo, starttls, handshake, auth, mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly stall?: boolean
  /** Pause before the reply. A time such as `'5m'` or `'2d'`, or a number of seconds. */
  readonly delay?: Time
  /** Pause between two bytes of the reply. A time such as `'5m'` or `'2d'`, or a number of seconds. At: greeting, ehlo, helo, starttls, handshake, auth, mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly drip?: Time
  /** Sends the reply in two pieces, the first of this many bytes. At: greeting, ehlo, helo, starttls, handshake, auth, mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly split?: number
  /** Pause between the two pieces (default 0s). A time such as `'5m'` or `'2d'`, or a number of seconds. At: greeting, ehlo, helo, starttls, handshake, auth, mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly gap?: Time
  /** Number of times that the reply is sent. At: greeting, ehlo, helo, starttls, handshake, auth, mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly repeat?: number
  /** Sends only this many bytes of the reply, then closes the connection. At: greeting, ehlo, helo, starttls, handshake, auth, mail, rcpt, data, body, end-of-data, rset, quit, idle. */
  readonly cut?: number
  /** Sends the reply together with the one before, ahead of the command. At: ehlo, helo, starttls, auth, mail, rcpt, data, end-of-data, rset, quit. */
  readonly early?: boolean
  /** Extensions that EHLO offers, in place of the default ones. At: ehlo. */
  readonly extensions?: readonly string[]
  /** Bytes of content (body) or time (idle) before the fault. At: body, idle. */
  readonly after?: Time
  /** Bytes of content read per second. A size such as `'10M'`, or a number of bytes. At: body. */
  readonly read_rate?: string | number
  /** Whether the message enters the mailbox, whatever the reply is. At: end-of-data. */
  readonly keep?: boolean
}
