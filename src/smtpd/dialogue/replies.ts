/** The replies of the SMTP server. Texts are Postfix's where Postfix has the same reply (smtpd.c). */
import type { SmtpReply } from '../../mail/smtp-reply.ts'

export const reply = (code: number, status: string | undefined, text: string): SmtpReply => ({ code, status, text })

/** Maximum octets of client text in a reply. RFC 5321 §4.5.3.1.5 limits the whole line to 512 octets. */
const ECHO_LIMIT = 300

export const OK = reply(250, '2.0.0', 'Ok')
export const SENDER_OK = reply(250, '2.1.0', 'Ok')
/** Reply to MAIL with a priority in place of that for which the client asked (RFC 6710 §4.1). */
export const otherPriority = (priority: number): SmtpReply => reply(250, '2.3.6', `${priority} is the priority of the message`)
export const NO_CLASS_NOW = reply(451, '4.3.0', 'Temporary lookup failure')
export const RECIPIENT_OK = reply(250, '2.1.5', 'Ok')
export const GO_AHEAD = reply(354, undefined, 'End data with <CR><LF>.<CR><LF>')
export const BYE = reply(221, '2.0.0', 'Bye')
export const NOT_SMTP = reply(221, '2.7.0', 'Error: this is a mail server, goodbye')
export const TLS_READY = reply(220, '2.0.0', 'Ready to start TLS')

export const TLS_ACTIVE = reply(554, '5.5.1', 'Error: TLS already active')
export const NEEDS_TLS = reply(530, '5.7.0', 'Must issue a STARTTLS command first')
export const NEEDS_HELO = reply(503, '5.5.1', 'Error: send HELO/EHLO first')
export const NEEDS_AUTH = reply(530, '5.7.0', 'Authentication required')

export const NOT_AUTHORIZED = reply(550, '5.7.0', 'Error: insufficient authorization')
export const NOT_IMPLEMENTED = reply(502, '5.5.1', 'Error: command not implemented')
export const VRFY_DISABLED = reply(502, '5.5.1', 'VRFY command is disabled')
export const AUTH_DISABLED = reply(503, '5.5.1', 'Error: authentication not enabled')
export const DSN_DISABLED = reply(501, '5.7.1', 'DSN support is disabled')
export const NOT_RECOGNIZED = reply(500, '5.5.2', 'Error: command not recognized')
export const BAD_SYNTAX = reply(500, '5.5.2', 'Error: bad syntax')
export const BAD_UTF8 = reply(500, '5.5.2', 'Error: bad UTF-8 syntax')
export const LINE_TOO_LONG = reply(500, '5.5.2', 'Error: line too long')
export const NO_VALID_RECIPIENTS = reply(554, '5.5.1', 'Error: no valid recipients')
export const NOT_SYNCHRONIZED = reply(554, '5.5.0', 'Error: SMTP protocol synchronization')

export const HAS_NUL = reply(554, '5.6.0', 'Error: message contains NUL characters')

export const BAD_SENDER = reply(501, '5.1.7', 'Bad sender address syntax')
export const BAD_RECIPIENT = reply(501, '5.1.3', 'Bad recipient address syntax')
export const NEEDS_SMTPUTF8 = reply(553, '5.6.7', 'Must declare SMTPUTF8 to send unicode address')
export const TOO_MANY_RECIPIENTS = reply(452, '4.5.3', 'Error: too many recipients')
export const CHUNKING_DISABLED = reply(521, '5.5.1', 'Error: command not implemented')
export const BDAT_SYNTAX = reply(521, '5.5.4', 'Syntax: BDAT count [LAST]')
export const NULL_CHUNK = reply(551, '5.7.1', 'Null BDAT request')
export const CHUNK_TOO_BIG = reply(552, '5.3.4', 'Chunk exceeds message size limit')
export const QUEUING_STARTED = reply(250, undefined, 'Queuing started')
export const CANNOT_FLUSH = reply(458, undefined, 'Unable to queue messages')
export const ETRN_IN_TRANSACTION = reply(503, undefined, 'Error: MAIL transaction in progress')
export const ETRN_SYNTAX = reply(500, undefined, 'Syntax: ETRN domain')
export const BAD_ETRN_DOMAIN = reply(501, undefined, 'Error: invalid parameter syntax')
export const HELD_NOTICE = reply(501, '5.5.4', 'Error: mail from <> is not held')
export const SIZE_EXCEEDED = reply(552, '5.3.4', 'Message size exceeds fixed limit')

/** Client text in a form suitable for a reply: ASCII, one line, limited length. */
export const echo = (text: string): string => text.replace(/[^ -~]/gu, '?').slice(0, ECHO_LIMIT)

/** 501 with the correct syntax. */
export const syntax = (text: string): SmtpReply => reply(501, '5.5.4', `Syntax: ${text}`)
export const badParameter = (text: string): SmtpReply => reply(501, '5.5.4', text)
export const unsupported = (parameter: string): SmtpReply => reply(555, '5.5.4', `Unsupported option: ${echo(parameter)}`)
/** 503: a command out of sequence. */
export const badSequence = (text: string): SmtpReply => reply(503, '5.5.1', `Error: ${text}`)
export const relayDenied = (recipient: string): SmtpReply => reply(454, '4.7.1', `<${echo(recipient)}>: Relay access denied`)
export const lookupFailed = (recipient: string): SmtpReply =>
  reply(451, '4.3.0', `<${echo(recipient)}>: Recipient address rejected: Temporary lookup failure`)
/** `octets` is the size of content that was received with BDAT. */
export const queuedAs = (queueId: string, octets?: number): SmtpReply =>
  reply(250, '2.0.0', `Ok: ${octets === undefined ? '' : `${octets} bytes `}queued as ${queueId}`)

/** Reply to an accepted chunk (RFC 3030 §2). */
export const chunkTaken = (octets: number): SmtpReply => reply(250, '2.0.0', `Ok: ${octets} bytes`)
/** Reply to a chunk that follows a refused one. */
export const discarded = (octets: number): SmtpReply => reply(551, '5.0.0', `Discarded ${octets} bytes after earlier error`)

/** Refuses ETRN for a domain outside fast_flush_domains; 459 is the code of RFC 1985 §5.3 for a node that is not allowed. */
export const etrnUnavailable = (domain: string): SmtpReply => reply(459, undefined, `<${echo(domain)}>: service unavailable`)
/** Refuses ETRN by smtpd_etrn_restrictions. */
export const etrnRejected = (domain: string): SmtpReply => reply(459, '4.7.1', `<${echo(domain)}>: Etrn command rejected: Access denied`)

/** 252, which does not disclose the addresses that exist (RFC 5321 §3.5.3, §7.3). */
export const notVerified = (text: string): SmtpReply => reply(252, '2.0.0', echo(text))

/** 421 with the server's name, before the connection is closed (RFC 5321 §3.8). */
export const disconnect = (status: string, myhostname: string, text: string): SmtpReply => reply(421, status, `${myhostname} ${text}`)
/** Applies soft_bounce to a reply: 5xx 5.x.x becomes 4xx 4.x.x. */
export const softened = ({ code, status, text }: SmtpReply): SmtpReply =>
  code < 500 ? reply(code, status, text) : reply(code - 100, status?.replace(/^5/, '4'), text)
/** Ends the sessions at a node that is drained, so that clients go to another one. */
export const drained = (myhostname: string): SmtpReply => disconnect('4.3.2', myhostname, 'Service not available: this node is drained')
export const localError = (myhostname: string): SmtpReply => disconnect('4.3.0', myhostname, 'Server local error')
export const tooManyConnections = (myhostname: string): SmtpReply => disconnect('4.7.0', myhostname, 'Error: too many connections')
export const bareNewline = (myhostname: string): SmtpReply => reply(550, '5.5.2', `${myhostname} Error: bare <LF> received`)
