/**
 * The ESMTP parameters of MAIL and RCPT: SIZE (RFC 1870), BODY (RFC 6152), SMTPUTF8 (RFC 6531), and RET, ENVID, NOTIFY
 * and ORCPT (RFC 3461). Each may stand once; a name nobody knows is refused.
 */
import type { Envelope, EnvelopeRecipient, Notify } from '../mail/envelope.ts'
import type { SmtpReply } from '../mail/reply.ts'
import { badParameter, unsupported } from './replies.ts'

export interface MailParameters extends Pick<Envelope, 'ret' | 'envid' | 'smtputf8' | 'body'> {
  /** Bytes as announced; 0 when nothing was. */
  readonly size: number
}

export type RecipientParameters = Pick<EnvelopeRecipient, 'notify' | 'orcpt'>

/** Either what was asked for, or the reply that refuses it. */
export type Parsed<T> = { readonly value: T } | { readonly refusal: SmtpReply }

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Reads one parameter into `into`; a refusal when its value is wrong, `unknown` when it is not ours. */
type Reader<T> = (value: string | undefined, into: Writable<T>) => SmtpReply | 'unknown' | undefined

/** Octets of an envelope id and of an original recipient (RFC 3461 §4.4 and §4.2). */
const ENVID_LIMIT = 100
const ORCPT_LIMIT = 500

/** No controls, no line breaks, however they were written: these values return in headers of notices. */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufffd]/

/** `+41` → `A` (RFC 3461 §4); undefined when it is no xtext or hides what may not be there. */
export function decodeXtext(text: string): string | undefined {
  if (/\+(?![0-9A-F]{2})|=/.test(text)) return undefined
  const decoded = text.replace(/\+([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return UNPRINTABLE.test(decoded) ? undefined : decoded
}

function readAll<T extends object>(text: string, readers: Readonly<Record<string, Reader<T>>>, empty: T): Parsed<T> {
  const into: Writable<T> = { ...empty }
  const seen = new Set<string>()
  for (const parameter of text === '' ? [] : text.split(/ +/)) {
    const equals = parameter.indexOf('=')
    const name = (equals < 0 ? parameter : parameter.slice(0, equals)).toUpperCase()
    const read = Object.hasOwn(readers, name) ? readers[name] : undefined
    if (seen.has(name)) return { refusal: badParameter(`Error: duplicate ${name} parameter`) }
    seen.add(name)
    const verdict = read === undefined ? 'unknown' : read(equals < 0 ? undefined : parameter.slice(equals + 1), into)
    if (verdict === 'unknown') return { refusal: unsupported(parameter) }
    if (verdict !== undefined) return { refusal: verdict }
  }
  return { value: into }
}

const MAIL: Readonly<Record<string, Reader<MailParameters>>> = {
  SIZE: (value, into) => {
    if (value === undefined || !/^\d{1,20}$/.test(value)) return badParameter('Bad message size syntax')
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
    if (ret !== 'full' && ret !== 'hdrs') return badParameter('Bad RET parameter syntax')
    into.ret = ret
    return undefined
  },
  ENVID: (value, into) => {
    const envid = value === undefined || value === '' || value.length > ENVID_LIMIT ? undefined : decodeXtext(value)
    if (envid === undefined || !/^[ -~]+$/.test(envid)) return badParameter('Bad ENVID parameter syntax')
    into.envid = envid
    return undefined
  },
}

const RCPT: Readonly<Record<string, Reader<RecipientParameters>>> = {
  NOTIFY: (value, into) => {
    into.notify = parseNotify(value ?? '')
    return into.notify === undefined ? badParameter('Error: Bad NOTIFY parameter syntax') : undefined
  },
  ORCPT: (value, into) => {
    const match = value === undefined || value.length > ORCPT_LIMIT ? null : /^([a-z0-9][a-z0-9-]*);(.+)$/i.exec(value)
    const address = match === null ? undefined : decodeXtext(match[2] ?? '')
    if (match === null || address === undefined) return badParameter('Error: Bad ORCPT parameter syntax')
    into.orcpt = `${match[1]?.toLowerCase()};${address}`
    return undefined
  },
}

function parseNotify(text: string): Notify | undefined {
  const wanted = text.toLowerCase().split(',')
  if (wanted.length === 1 && wanted[0] === 'never') return 'never'
  const kinds = (['success', 'failure', 'delay'] as const).filter((kind) => wanted.includes(kind))
  return wanted.length === kinds.length ? kinds : undefined
}

/** AUTH= is about who sent the mail first (RFC 4954 §5): heard where clients log in, and believed of nobody. */
const MAIL_AND_AUTH: typeof MAIL = { ...MAIL, AUTH: (value) => (value === undefined || value === '' ? 'unknown' : undefined) }

export const parseMailParameters = (text: string, withAuth = false): Parsed<MailParameters> =>
  readAll(text, withAuth ? MAIL_AND_AUTH : MAIL, { size: 0 })

export const parseRecipientParameters = (text: string): Parsed<RecipientParameters> => readAll(text, RCPT, {})
