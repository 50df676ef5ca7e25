/** Failures of clients of the SMTP server: their texts, and their lines in the form that Postfix's log readers expect. */
import { clientText } from '../../events/event-kind.ts'
import type { ClientName } from '../../mail/client-name.ts'
import { formatReply, maskControls, type SmtpReply } from '../../mail/smtp-reply.ts'

/** Reasons for which a connection ends before QUIT, by the command or stage `after` which it ended. */
const ENDS = {
  'lost-connection': 'lost connection',
  timeout: 'timeout',
  pipelining: 'improper command pipelining',
  'bare-newline': 'bare <LF>',
  'endless-line': 'line without end',
  'too-many-errors': 'too many errors',
  'too-many-failed-logins': 'too many failed logins',
  'internal-error': 'internal error',
} as const

/** Reason for which the server ends a connection. */
export type ConnectionEnd = keyof typeof ENDS

/** A failure of a client or of its connection. */
export type ClientFailure =
  | { readonly what: ConnectionEnd; readonly after: string }
  | { readonly what: 'failed-login'; readonly method: string; readonly username: string }
  | { readonly what: 'illegal-address'; readonly command: 'MAIL' | 'RCPT' | 'VRFY'; readonly address: string }
  | { readonly what: 'non-smtp-command' | 'malformed-bdat'; readonly command: string }
  | { readonly what: 'null-bdat' | 'bdat-too-big' }
  | { readonly what: 'tls-failed' | 'proxy-header'; readonly why: string }
  /** The connection was refused in place of the greeting. */
  | { readonly what: 'rejected'; readonly reply: SmtpReply }
  /** The connection was closed in place of the reply to the end of the content. */
  | { readonly what: 'no-reply' }

/** Begin of a line, and the text before and after the client, whose name is in the line only. */
type Parts = readonly [prefix: '' | 'warning: ' | 'warning: NOQUEUE: ', head: string, tail?: string]

function partsOf(failure: Exclude<ClientFailure, { readonly what: 'failed-login' | 'rejected' }>): Parts {
  if ('after' in failure) return ['', `${ENDS[failure.what]} after ${failure.after}`]
  switch (failure.what) {
    case 'illegal-address':
      return ['warning: ', 'Illegal address syntax', ` in ${failure.command} command: <${failure.address}>`]
    case 'non-smtp-command':
      return ['warning: ', 'non-SMTP command', `: ${failure.command}`]
    case 'malformed-bdat':
      return ['warning: NOQUEUE: ', 'malformed BDAT command syntax', `: ${failure.command}`]
    case 'null-bdat':
      return ['warning: NOQUEUE: ', 'null BDAT request']
    case 'bdat-too-big':
      return ['warning: NOQUEUE: ', 'BDAT request', ' exceeds message size limit']
    case 'tls-failed':
      return ['', 'SSL_accept error', `: ${failure.why}`]
    case 'proxy-header':
      return ['', `haproxy read: ${failure.why}`]
    case 'no-reply':
      return ['', 'no reply to the end of the content, since the commit of the message was not answered']
  }
}

/** Describes a failure without its client. */
export function failureText(failure: ClientFailure): string {
  if (failure.what === 'rejected') return formatReply(failure.reply)
  // The reason in the words of Cyrus SASL (Postfix smtpd_sasl_authenticate).
  if (failure.what === 'failed-login')
    return `SASL ${failure.method} authentication failed: authentication failure, sasl_username=${maskControls(failure.username)}`
  const [, head, tail = ''] = partsOf(failure)
  return head + tail
}

/** Describes a failure as Postfix's smtpd does. */
export function failureLine(client: ClientName, failure: ClientFailure): string {
  const name = clientText(client)
  if (failure.what === 'rejected') return `NOQUEUE: reject: CONNECT from ${name}: ${failureText(failure)}; proto=SMTP`
  // fail2ban's filter for Postfix recognizes failed logins by this form of the line (postfix smtpd_sasl_glue).
  if (failure.what === 'failed-login') return `warning: ${name}: ${failureText(failure)}`
  const [prefix, head, tail = ''] = partsOf(failure)
  return `${prefix}${head} from ${name}${tail}`
}
