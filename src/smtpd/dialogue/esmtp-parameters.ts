/**
 * Parses the ESMTP parameters of MAIL and RCPT: SIZE (RFC 1870), BODY (RFC 6152), SMTPUTF8 (RFC 6531), and RET, ENVID,
 * NOTIFY and ORCPT (RFC 3461), HOLDFOR and HOLDUNTIL (RFC 4865), BY (RFC 2852), MT-PRIORITY (RFC 6710). Those of the last four may occur once; an unknown name is
 * refused. Decides which of the times are granted.
 */
import type { Config } from '../../config/options.ts'
import { parseNotify, type Envelope, type EnvelopeRecipient } from '../../mail/envelope.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import {
  BY_MODES,
  isReturned,
  parseInstant,
  queueTimeOf,
  timeProblem,
  type ByMode,
  type DeliverBy,
  type Moment,
  type NamedTime,
} from '../../mail/message-times.ts'
import { SECOND, type Duration, type QueueTime } from '../../system/clock.ts'
import { badParameter, DSN_DISABLED, HELD_NOTICE, NEEDS_AUTH, reply, unsupported } from './replies.ts'

export interface MailParameters extends Pick<Envelope, 'ret' | 'envid' | 'smtputf8' | 'body' | 'release'> {
  /** Size in bytes as stated by the client; 0 without SIZE. */
  readonly size: number
  /** Value of MT-PRIORITY, from -9 to 9. */
  readonly priority?: number | undefined
  /** Time of BY from MAIL; 0 or less, with the mode N only, when it has passed. */
  readonly by?: { readonly span: Duration; readonly mode: ByMode } | undefined
}

export type RecipientParameters = Pick<EnvelopeRecipient, 'notify' | 'orcpt'>

/** Either the parameters, or the reply that refuses them. */
export type Parsed<T> = { readonly value: T } | { readonly refusal: SmtpReply }

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Reads one parameter into `into`. Returns a refusal when the value is invalid, and `unknown` when the parameter is not supported. */
type Reader<T> = (value: string | undefined, into: Writable<T>) => SmtpReply | 'unknown' | undefined

/** Maximum octets of an envelope id (RFC 3461 §4.4). */
const ENVID_LIMIT = 100
/** Maximum octets of an original recipient (RFC 3461 §4.2). */
const ORCPT_LIMIT = 500

/** Matches control characters and line breaks, also decoded ones, because these values appear in header fields of notices. */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufffd]/

/**
 * Decodes xtext, `+41` → `A` (RFC 3461 §4). Returns undefined when the text is malformed or contains unprintable characters. An
 * equals sign that is not encoded stands for itself, as in Postfix: VERP and BATV addresses have one.
 */
function decodeXtext(text: string): string | undefined {
  if (/\+(?![0-9A-F]{2})/.test(text)) return undefined
  // An escape stands for one octet, so a character of several octets has several escapes.
  const octets = text.split(/(\+[0-9A-F]{2})/).map((part) => (part.startsWith('+') ? Buffer.from(part.slice(1), 'hex') : Buffer.from(part)))
  const decoded = Buffer.concat(octets).toString('utf8')
  return UNPRINTABLE.test(decoded) ? undefined : decoded
}

/** Decodes the escapes of a utf-8 address, `\x{E4}` → `ä` (RFC 6533 §3). */
const decodeUnitext = (text: string): string =>
  text.replace(/\\x\{(10[0-9A-F]{4}|[0-9A-F]{2,5})\}/gi, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))

function readAll<T extends object>(text: string, readers: Readonly<Record<string, Reader<T>>>, empty: T): Parsed<T> {
  const into: Writable<T> = { ...empty }
  for (const parameter of text === '' ? [] : text.split(/ +/)) {
    const equals = parameter.indexOf('=')
    const name = (equals < 0 ? parameter : parameter.slice(0, equals)).toUpperCase()
    const read = Object.hasOwn(readers, name) ? readers[name] : undefined
    const verdict = read === undefined ? 'unknown' : read(equals < 0 ? undefined : parameter.slice(equals + 1), into)
    if (verdict === 'unknown') return { refusal: unsupported(parameter) }
    if (verdict !== undefined) return { refusal: verdict }
  }
  return { value: into }
}

const MAIL: Readonly<Record<string, Reader<MailParameters>>> = {
  SIZE: (value, into) => {
    if (value === undefined) return 'unknown'
    if (!/^\d{1,20}$/.test(value)) return badParameter('Bad message size syntax')
    into.size = Number(value)
    return undefined
  },
  BODY: (value, into) => {
    const body = value?.toLowerCase()
    if (body !== '7bit' && body !== '8bitmime') return 'unknown'
    into.body = body
    return undefined
  },
  SMTPUTF8: (value, into) => {
    if (value !== undefined) return 'unknown'
    into.smtputf8 = true
    return undefined
  },
  RET: (value, into) => {
    const ret = value?.toLowerCase()
    if (into.ret !== undefined || (ret !== 'full' && ret !== 'hdrs')) return badParameter('Bad RET parameter syntax')
    into.ret = ret
    return undefined
  },
  /** AUTH= identifies the original submitter (RFC 4954 §5). It has no effect. */
  AUTH: (value) => (value === undefined || value === '' ? 'unknown' : undefined),
  ENVID: (value, into) => {
    const envid = value === undefined || value === '' || value.length > ENVID_LIMIT ? undefined : decodeXtext(value)
    if (into.envid !== undefined || envid === undefined || !/^[ -~]+$/.test(envid)) return badParameter('Bad ENVID parameter syntax')
    into.envid = envid
    return undefined
  },
  HOLDFOR: (value, into) => {
    if (into.release !== undefined || !/^[1-9]\d{0,8}$/.test(value ?? '')) return badParameter('Bad HOLDFOR parameter syntax')
    into.release = { kind: 'span', span: Number(value) * SECOND }
    return undefined
  },
  HOLDUNTIL: (value, into) => {
    const at = parseInstant(value ?? '')
    if (into.release !== undefined || at === undefined) return badParameter('Bad HOLDUNTIL parameter syntax')
    into.release = { kind: 'instant', at }
    return undefined
  },
  BY: (value, into) => {
    const [, seconds, letters] = /^([+-]?\d{1,9});([RN]T?)$/i.exec(value ?? '') ?? []
    const mode = BY_MODES.find((known) => known === letters?.toUpperCase())
    const span = Number(seconds) * SECOND
    if (into.by !== undefined || mode === undefined || (isReturned(mode) && span <= 0)) return badParameter('Bad BY parameter syntax')
    into.by = { span, mode }
    return undefined
  },
  'MT-PRIORITY': (value, into) => {
    if (into.priority !== undefined || !/^(?:0|-?[1-9])$/.test(value ?? '')) return reply(501, '5.5.2', 'Bad MT-PRIORITY parameter syntax')
    into.priority = Number(value)
    return undefined
  },
}

const RCPT: Readonly<Record<string, Reader<RecipientParameters>>> = {
  NOTIFY: (value, into) => {
    const notify = into.notify === undefined ? parseNotify(value ?? '') : undefined
    into.notify = notify
    return notify === undefined ? badParameter('Error: Bad NOTIFY parameter syntax') : undefined
  },
  ORCPT: (value, into) => {
    const match = value === undefined || value.length > ORCPT_LIMIT ? null : /^([a-z0-9][a-z0-9-]*);(.+)$/i.exec(value)
    const type = match?.[1]?.toLowerCase()
    const address = match === null ? undefined : type === 'utf-8' ? decodeUnitext(match[2] ?? '') : decodeXtext(match[2] ?? '')
    if (into.orcpt !== undefined || address === undefined || UNPRINTABLE.test(address))
      return badParameter('Error: Bad ORCPT parameter syntax')
    into.orcpt = `${type};${address}`
    return undefined
  },
}

/** Extensions that a session offers. */
export interface ParameterRules {
  readonly withDsn: boolean
  readonly withUtf8: boolean
  readonly withHold: boolean
  readonly withDeliverBy: boolean
  readonly withPriority: boolean
}

const ALL: ParameterRules = { withDsn: true, withUtf8: true, withHold: true, withDeliverBy: true, withPriority: true }

const notSupported = () => 'unknown' as const

const withoutDsn = (): SmtpReply => DSN_DISABLED

const mailReaders = ({ withDsn, withUtf8, withHold, withDeliverBy, withPriority }: ParameterRules): typeof MAIL =>
  withDsn && withUtf8 && withHold && withDeliverBy && withPriority
    ? MAIL
    : {
        ...MAIL,
        ...(withDsn ? {} : { RET: withoutDsn, ENVID: withoutDsn }),
        ...(withUtf8 ? {} : { SMTPUTF8: notSupported }),
        ...(withHold ? {} : { HOLDFOR: notSupported, HOLDUNTIL: notSupported }),
        ...(withDeliverBy ? {} : { BY: notSupported }),
        ...(withPriority ? {} : { 'MT-PRIORITY': notSupported }),
      }

export const parseMailParameters = (text: string, rules = ALL): Parsed<MailParameters> => readAll(text, mailReaders(rules), { size: 0 })

export const parseRecipientParameters = (text: string, rules = ALL): Parsed<RecipientParameters> =>
  readAll(text, rules.withDsn ? RCPT : { NOTIFY: withoutDsn, ORCPT: withoutDsn }, {})

export type TimeSettings = Pick<Config, 'smtpd_future_release_limit' | 'smtpd_deliver_by_enable' | 'smtpd_deliver_by_minimum'>

interface TimeFacts {
  readonly sender: string
  readonly parameters: Pick<MailParameters, 'release' | 'by'>
  /** True for a client that may hold its mail back. */
  readonly mayHold: boolean
  readonly moment: Moment
  readonly settings: TimeSettings
}

/** The deliver-by time of a message whose MAIL arrives now. */
export const deliverByOf = ({ by }: Pick<MailParameters, 'by'>, now: QueueTime): DeliverBy | undefined =>
  by === undefined ? undefined : { at: now + by.span, mode: by.mode }

/** Shortest time of BY in whole seconds. */
export const shortestBy = ({ smtpd_deliver_by_minimum: minimum }: Pick<TimeSettings, 'smtpd_deliver_by_minimum'>): number =>
  Math.ceil(minimum / SECOND)

/** Reply to a time that is not granted; undefined when all are. */
export function refusalOfTimes(facts: TimeFacts): SmtpReply | undefined {
  const { release, by } = facts.parameters
  const unheld = release === undefined ? undefined : holdRefusal(release, facts)
  if (unheld !== undefined || by === undefined) return unheld
  const shortest = shortestBy(facts.settings)
  if (isReturned(by.mode) && by.span < shortest * SECOND) return reply(555, '5.5.4', `BY is below the minimum of ${shortest} seconds`)
  const { moment } = facts
  return release !== undefined && queueTimeOf(release, moment) > moment.now + by.span
    ? badParameter(`${nameOf(release)} is later than the time of BY`)
    : undefined
}

const nameOf = ({ kind }: NamedTime): string => (kind === 'span' ? 'HOLDFOR' : 'HOLDUNTIL')

function holdRefusal(release: NamedTime, { sender, mayHold, moment, settings }: TimeFacts): SmtpReply | undefined {
  if (!mayHold) return NEEDS_AUTH
  if (sender === '') return HELD_NOTICE
  const { smtpd_future_release_limit: limit } = settings
  switch (timeProblem(release, moment, limit)) {
    case 'too-far':
      return badParameter(`${nameOf(release)} is more than the limit of ${Math.floor(limit / SECOND)} seconds in the future`)
    case 'past':
      return badParameter(`${nameOf(release)} is in the past`)
    case null:
      return undefined
  }
}
