/** Table of the SMTP commands (RFC 5321 §4.1.1, RFC 1985, RFC 3030, RFC 3207, RFC 4954) with Postfix's XCLIENT and XFORWARD, and the replies to unknown ones. */
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import type { Chunk } from './chunk-sequence.ts'
import type { CommandName } from './command-stats.ts'
import * as replies from './replies.ts'

/** A reply, and the action that the connection takes after it. */
export interface Response {
  readonly reply: SmtpReply
  /** Lines of the reply after the first one. */
  readonly keywords?: readonly string[]
  readonly next?: 'close' | 'quit' | 'content' | 'starttls' | 'greet'
  /** True when a refusal does not count as an error of the client. */
  readonly excused?: boolean
}

/** A chunk of content follows the command, and its reply follows the chunk. */
interface ChunkFollows {
  readonly chunk: Chunk
}

/** Result of a command. `auth-exchange` means that the login may begin; the exchange bypasses the session. */
export type Answer = Response | Promise<Response> | ChunkFollows | 'auth-exchange'

/** The methods of the session that commands call. `argument` is the trimmed text after the command. */
export interface CommandHandler {
  greet(name: string, extended: boolean): Answer
  starttls(argument: string): Answer
  auth(argument: string): Answer
  mail(argument: string): Answer
  rcpt(argument: string): Answer
  data(argument: string): Answer
  /** `line` is the whole command, for the log. */
  bdat(argument: string, line: string): Answer
  reset(argument: string): Answer
  verify(argument: string): Answer
  flush(argument: string): Answer
  xclient(argument: string): Answer
  xforward(argument: string): Answer
}

export interface Command {
  readonly name: CommandName
  readonly run: (session: CommandHandler, argument: string, line: string) => Answer
  /** True for a command that must be the last of a pipelined group (RFC 2920 §3.1), because the client has to wait for its reply. */
  readonly endsGroup?: boolean
  /** True for a command that is allowed without TLS where TLS is required (Postfix smtpd_tls_security_level = encrypt). */
  readonly beforeTls?: boolean
}

/** Commands of HTTP. They are sent by clients of another protocol, or by a web page that makes a browser send mail commands. */
const FOREIGN_COMMANDS = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'TRACE'])

const COMMANDS: Readonly<Record<string, Command>> = {
  HELO: { name: 'helo', run: (session, name) => session.greet(name, false), endsGroup: true, beforeTls: true },
  EHLO: { name: 'ehlo', run: (session, name) => session.greet(name, true), endsGroup: true, beforeTls: true },
  STARTTLS: { name: 'starttls', run: (session, argument) => session.starttls(argument), beforeTls: true },
  AUTH: { name: 'auth', run: (session, argument) => session.auth(argument), endsGroup: true },
  MAIL: { name: 'mail', run: (session, argument) => session.mail(argument) },
  RCPT: { name: 'rcpt', run: (session, argument) => session.rcpt(argument) },
  DATA: { name: 'data', run: (session, argument) => session.data(argument), endsGroup: true },
  BDAT: { name: 'bdat', run: (session, argument, line) => session.bdat(argument, line) },
  RSET: { name: 'rset', run: (session, argument) => session.reset(argument) },
  NOOP: { name: 'noop', run: () => ({ reply: replies.OK }), endsGroup: true, beforeTls: true },
  VRFY: { name: 'vrfy', run: (session, argument) => session.verify(argument), endsGroup: true },
  ETRN: { name: 'etrn', run: (session, argument) => session.flush(argument) },
  XCLIENT: { name: 'xclient', run: (session, argument) => session.xclient(argument), beforeTls: true },
  XFORWARD: { name: 'xforward', run: (session, argument) => session.xforward(argument) },
  QUIT: { name: 'quit', run: () => ({ reply: replies.BYE, next: 'quit' }), beforeTls: true },
}

export const verbOf = (line: string): string => (/^\s*(\S*)/.exec(line)?.[1] ?? '').toUpperCase()

export const argumentOf = (line: string): string => line.trim().replace(/^\S+\s*/, '')

export function commandOf(line: string): Command | undefined {
  const verb = verbOf(line)
  return Object.hasOwn(COMMANDS, verb) ? COMMANDS[verb] : undefined
}

export function unknownCommand(line: string): Response {
  const verb = verbOf(line)
  const foreign = FOREIGN_COMMANDS.has(verb) || /^[^A-Z]/.test(verb) || /^[!-9;-~]+:/.test(line.trimStart())
  return foreign ? { reply: replies.NOT_SMTP, next: 'close' } : { reply: replies.NOT_RECOGNIZED }
}
