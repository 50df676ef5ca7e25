/** The replies of the SMTP server, word for word as clients and log readers know them from Postfix (postfix smtpd). */
import type { SmtpReply } from '../mail/reply.ts'

export const reply = (code: number, status: string | undefined, text: string): SmtpReply => ({ code, status, text })

/** RFC 5321 §4.5.3.1.5 gives a reply line 512 octets; ours has other words as well. */
const ECHO_LIMIT = 300

export const OK = reply(250, '2.0.0', 'Ok')
export const SENDER_OK = reply(250, '2.1.0', 'Ok')
export const RECIPIENT_OK = reply(250, '2.1.5', 'Ok')
export const GO_AHEAD = reply(354, undefined, 'End data with <CR><LF>.<CR><LF>')
export const BYE = reply(221, '2.0.0', 'Bye')
export const NOT_SMTP = reply(221, '2.7.0', 'Error: this is a mail server, goodbye')
export const TLS_READY = reply(220, '2.0.0', 'Ready to start TLS')

export const TLS_ACTIVE = reply(554, '5.5.1', 'Error: TLS already active')
export const NEEDS_TLS = reply(530, '5.7.0', 'Must issue a STARTTLS command first')
export const NEEDS_TLS_FOR_AUTH = reply(538, '5.7.11', 'Encryption required for requested authentication mechanism')
export const NEEDS_AUTH = reply(530, '5.7.0', 'Authentication required')

export const NOT_RECOGNIZED = reply(500, '5.5.2', 'Error: command not recognized')
export const BAD_SYNTAX = reply(500, '5.5.2', 'Error: bad syntax')
export const LINE_TOO_LONG = reply(500, '5.5.2', 'Error: line too long')
export const NO_VALID_RECIPIENTS = reply(554, '5.5.1', 'Error: no valid recipients')
export const OUT_OF_STEP = reply(554, '5.5.0', 'Error: SMTP protocol synchronization')
export const HAS_NUL = reply(554, '5.6.0', 'Error: message contains NUL characters')

export const BAD_SENDER = reply(501, '5.1.7', 'Bad sender address syntax')
export const BAD_RECIPIENT = reply(501, '5.1.3', 'Bad recipient address syntax')
export const NEEDS_SMTPUTF8 = reply(553, '5.6.7', 'Must declare SMTPUTF8 to send unicode address')
export const TOO_MANY_RECIPIENTS = reply(452, '4.5.3', 'Error: too many recipients')
export const SIZE_EXCEEDED = reply(552, '5.3.4', 'Message size exceeds fixed limit')
export const SERVER_TROUBLE = reply(451, '4.3.0', 'Error: internal trouble, try again later')

/** What a client said, fit for a reply: a line of ASCII, not too long. */
const echo = (text: string): string => text.replace(/[^ -~]/gu, '?').slice(0, ECHO_LIMIT)

/** 501 with the right syntax. */
export const syntax = (text: string): SmtpReply => reply(501, '5.5.4', `Syntax: ${text}`)
export const badParameter = (text: string): SmtpReply => reply(501, '5.5.4', text)
export const unsupported = (parameter: string): SmtpReply => reply(555, '5.5.4', `Unsupported option: ${echo(parameter)}`)
/** 503: a good command at the wrong time. */
export const misplaced = (text: string): SmtpReply => reply(503, '5.5.1', `Error: ${text}`)
export const relayDenied = (recipient: string): SmtpReply => reply(454, '4.7.1', `<${echo(recipient)}>: Relay access denied`)
export const queuedAs = (queueId: string): SmtpReply => reply(250, '2.0.0', `Ok: queued as ${queueId}`)

/** 252: we do not tell who is known here; whoever wants to know may try (RFC 5321 §3.5.3). */
export const notVerified = (text: string): SmtpReply => reply(252, '2.0.0', echo(text))

/** 421 with our name: the connection ends with it (RFC 5321 §3.8). */
export const shownOut = (status: string, myhostname: string, text: string): SmtpReply => reply(421, status, `${myhostname} ${text}`)
/** The same for the time being (postfix soft_bounce): 5xx 5.x.x becomes 4xx 4.x.x. */
export const softened = ({ code, status, text }: SmtpReply): SmtpReply =>
  code < 500 ? reply(code, status, text) : reply(code - 100, status?.replace(/^5/, '4'), text)
export const full = (myhostname: string): SmtpReply => shownOut('4.7.0', myhostname, 'Error: too many connections')
export const bareNewline = (myhostname: string): SmtpReply => reply(550, '5.5.2', `${myhostname} Error: bare <LF> received`)
