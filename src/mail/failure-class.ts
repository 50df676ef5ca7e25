/**
 * Classes of failures, by status code, stage and reply code of an attempt (RFC 3463, and IANA’s registry of enhanced status codes). No text is
 * searched, because servers word the same refusal in many ways. Pure.
 */
import { requestForLess } from './less-mail.ts'
import { loginRefusal, type LoginRefusal } from './login-refusal.ts'
import type { DeliveryStatus, Stage } from './smtp-reply.ts'

/**
 * - `recipient`: the address does not exist or accepts no mail;
 * - `domain`: the domain does not exist or accepts no mail;
 * - `full`: no room in the mailbox or on the server; `size`: the message is too large;
 * - `rate`: less mail is asked for;
 * - `authentication`: DKIM, SPF, PTR or ARC; `policy`: another rule of the server; `content`: form or content of the message;
 * - `tls`: TLS or a certificate; `route`: DNS, connections, loops; `protocol`: replies that break the protocol;
 * - `expired`: the lifetime ended before an attempt; `ours`: this relay; `unknown`: no enhanced code tells.
 */
export const FAILURE_CLASSES = [
  'recipient',
  'domain',
  'full',
  'size',
  'rate',
  'authentication',
  'policy',
  'content',
  'tls',
  'route',
  'protocol',
  'expired',
  'ours',
  'unknown',
] as const

/** Cause of a failure, by the reply or the stage; docs/deliverability.md has the meaning of each class. */
export type FailureClass = (typeof FAILURE_CLASSES)[number]

interface ClassifiedFailure {
  readonly class: FailureClass
  /** For example `x.1.1 in reply to RCPT`. */
  readonly rule: string
}

type Facts = Pick<DeliveryStatus, 'status' | 'stage' | 'reply'>

const AFTER_DOT: ReadonlySet<Stage> = new Set(['body', 'end-of-data'])

/** Classes of single codes without their first digit, wherever they occur. */
const CODES: Readonly<Record<string, FailureClass>> = {
  '1.2': 'domain',
  '1.10': 'domain',
  '2.2': 'full',
  '2.3': 'size',
  '3.4': 'size',
  '4.7': 'expired',
  '7.4': 'tls',
  '7.5': 'tls',
  '7.10': 'tls',
  '7.18': 'domain',
  '7.30': 'tls',
  ...Object.fromEntries([20, 21, 22, 23, 24, 25, 26, 27, 29].map((detail) => [`7.${detail}`, 'authentication' as const])),
}

/** Codes that concern the recipient, where a reply is about one. */
const OF_RECIPIENT: ReadonlySet<string> = new Set(['1.1', '1.3', '1.6', '2.1'])
const OF_RECIPIENT_IF_PERMANENT: ReadonlySet<string> = new Set(['7.13', '7.17'])

/** Classes of subjects (the second digit), for codes that no other rule has. */
const SUBJECTS: Readonly<Record<string, FailureClass>> = { '4': 'route', '5': 'protocol', '6': 'content', '7': 'policy' }

const REFUSALS: Readonly<Record<LoginRefusal['kind'], readonly [name: FailureClass, rule: string]>> = {
  refused: ['ours', 'in reply to the login of this relay'],
  missing: ['ours', 'for want of a login of this relay'],
  mailbox: ['ours', 'about the mailbox of the login'],
  sender: ['policy', 'about the sender of the login'],
  limit: ['rate', 'about the mailbox of the login'],
}

export function failureClass(facts: Facts): ClassifiedFailure {
  const { status, stage, reply } = facts
  const [kind = '', subject = ''] = status.split('.')
  const code = status.slice(kind.length + 1)
  const found = (name: FailureClass, rule: string): ClassifiedFailure => ({ class: name, rule })
  const asked = requestForLess('class', facts)
  if (reply?.startsWith('421') === true && asked !== null) return found('rate', asked)
  const refusal = loginRefusal(facts)
  if (refusal !== undefined) {
    const [name, rule] = REFUSALS[refusal.kind]
    return found(name, `x.${code} ${rule}`)
  }
  if (stage === 'auth') return found('ours', 'login of this relay')
  if (stage === 'dns' && kind === '5') return found('domain', 'DNS has no mail exchanger')
  if (reply === undefined && subject === '3' && code !== '3.4') return found('ours', `${kind}.${code} without a reply`)
  if (code === '7.0' && AFTER_DOT.has(stage)) return found('content', 'x.7.0 after the content')
  if (asked !== null) return found('rate', asked)
  if (status === '4.3.1') return found('full', status)
  const isOfRecipient = OF_RECIPIENT.has(code) || (kind === '5' && OF_RECIPIENT_IF_PERMANENT.has(code))
  if (isOfRecipient && (stage === 'rcpt' || stage === 'end-of-data')) return found('recipient', `x.${code} in reply to ${commandOf(stage)}`)
  if (isOfRecipient && stage === 'route') return found('recipient', `x.${code} before an attempt`)
  if (Object.hasOwn(CODES, code)) return found(CODES[code] ?? 'unknown', `x.${code}`)
  if (reply?.startsWith('554') === true && stage === 'greeting') return found('policy', 'reply 554 as greeting')
  const bySubject = SUBJECTS[subject]
  if (bySubject !== undefined) return found(bySubject, `x.${subject}.x`)
  return found('unknown', 'no rule for this code')
}

const commandOf = (stage: 'rcpt' | 'end-of-data'): string => (stage === 'rcpt' ? 'RCPT' : 'the content')
