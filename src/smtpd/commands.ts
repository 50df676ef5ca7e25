/** The commands of SMTP (RFC 5321 §4.1.1, RFC 3207, RFC 4954), and what is answered to everything else. */
import type { SmtpReply } from '../mail/reply.ts'
import type { CommandName } from './conduct.ts'
import * as say from './replies.ts'

/** What is said, and what is done after it. */
export interface Said {
  readonly reply: SmtpReply
  /** Lines after the first one. */
  readonly keywords?: readonly string[]
  readonly next?: 'close' | 'content' | 'starttls'
  /** Refused, but no error that counts against the client. */
  readonly excused?: boolean
}

/** `dialogue`: the client may log in, and what is said until that is done is none of the session's business. */
export type Answer = Said | Promise<Said> | 'dialogue'

/** Whoever leads the dialogue: what the commands come down to. The argument is what follows the command, trimmed. */
export interface Dialogue {
  greet(name: string, extended: boolean): Answer
  starttls(argument: string): Answer
  auth(argument: string): Answer
  mail(argument: string): Answer
  rcpt(argument: string): Answer
  data(argument: string): Answer
  reset(argument: string): Answer
}

export interface Command {
  readonly name: CommandName
  readonly run: (dialogue: Dialogue, argument: string) => Answer
  /** Must be the last of a group (RFC 2920 §3.1): nothing may be sent before it is answered. */
  readonly endsGroup?: boolean
}

/** Clients of other protocols, and web pages made to talk to us. */
const FOREIGN_COMMANDS = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'TRACE'])

const COMMANDS: Readonly<Record<string, Command>> = {
  HELO: { name: 'helo', run: (dialogue, name) => dialogue.greet(name, false), endsGroup: true },
  EHLO: { name: 'ehlo', run: (dialogue, name) => dialogue.greet(name, true), endsGroup: true },
  STARTTLS: { name: 'starttls', run: (dialogue, argument) => dialogue.starttls(argument) },
  AUTH: { name: 'auth', run: (dialogue, argument) => dialogue.auth(argument), endsGroup: true },
  MAIL: { name: 'mail', run: (dialogue, argument) => dialogue.mail(argument) },
  RCPT: { name: 'rcpt', run: (dialogue, argument) => dialogue.rcpt(argument) },
  DATA: { name: 'data', run: (dialogue, argument) => dialogue.data(argument), endsGroup: true },
  RSET: { name: 'rset', run: (dialogue, argument) => dialogue.reset(argument) },
  NOOP: { name: 'noop', run: () => ({ reply: say.OK }), endsGroup: true },
  VRFY: {
    name: 'vrfy',
    run: (_, argument) => ({ reply: argument === '' ? say.syntax('VRFY address') : say.notVerified(argument) }),
    endsGroup: true,
  },
  QUIT: { name: 'quit', run: () => ({ reply: say.BYE, next: 'close' }) },
}

const verbOf = (line: string): string => (/^\s*(\S*)/.exec(line)?.[1] ?? '').toUpperCase()

export const argumentOf = (line: string): string => line.trim().replace(/^\S+\s*/, '')

export function commandOf(line: string): Command | undefined {
  const verb = verbOf(line)
  return Object.hasOwn(COMMANDS, verb) ? COMMANDS[verb] : undefined
}

export function unknownCommand(line: string): Said {
  const verb = verbOf(line)
  if (verb === '') return { reply: say.BAD_SYNTAX }
  const foreign = FOREIGN_COMMANDS.has(verb) || /^[^A-Z]/.test(verb) || /^[!-9;-~]+:/.test(line.trimStart())
  return foreign ? { reply: say.NOT_SMTP, next: 'close' } : { reply: say.NOT_RECOGNIZED }
}
