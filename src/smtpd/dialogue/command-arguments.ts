/** Parses the arguments of MAIL, RCPT (RFC 5321 §4.1.1) and VRFY: path and ESMTP parameters. Pure; the session decides what to do. */
import { isInternational } from '../../mail/address.ts'
import { parseAddress, parsePath, splitPath, type PathAddress } from '../../mail/address-path.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import {
  parseMailParameters,
  parseRecipientParameters,
  type MailParameters,
  type ParameterRules,
  type RecipientParameters,
} from './esmtp-parameters.ts'
import * as replies from './replies.ts'

/** The parsed argument, or the reply that refuses it. `illegal` is the path as sent when it is no address. */
export type ParsedArgument<T> = { readonly value: T } | { readonly refusal: SmtpReply; readonly illegal?: string }

export interface ArgumentRules extends ParameterRules {
  /** Domain for addresses that have none (myorigin). */
  readonly origin: string
}

interface MailArgument {
  /** Reverse-path; empty for `<>`. */
  readonly sender: PathAddress
  readonly parameters: MailParameters
}

export function parseMail(argument: string, rules: ArgumentRules): ParsedArgument<MailArgument> {
  const text = /^FROM:\s*(\S[^]*)$/i.exec(argument)?.[1]
  if (text === undefined) return { refusal: replies.syntax('MAIL FROM:<address>') }
  const path = splitPath(text)
  if (path === undefined) return { refusal: replies.BAD_SENDER, illegal: text }
  const sender = path.path === '' ? NULL_SENDER : parsePath(path.path, rules.origin)
  if (sender === undefined || isOption(sender)) return { refusal: replies.BAD_SENDER, illegal: path.path }
  const parsed = parseMailParameters(path.rest, rules)
  if ('refusal' in parsed) return parsed
  if (isInternational(sender.address) && parsed.value.smtputf8 !== true) return { refusal: replies.NEEDS_SMTPUTF8 }
  return { value: { sender, parameters: parsed.value } }
}

const NULL_SENDER: PathAddress = { address: '', given: '' }

interface RecipientArgument extends PathAddress {
  /** The forward-path as sent, for replies. */
  readonly path: string
  readonly parameters: RecipientParameters
}

export function parseRecipient(argument: string, rules: ArgumentRules): ParsedArgument<RecipientArgument> {
  const text = /^TO:\s*(\S[^]*)$/i.exec(argument)?.[1]
  if (text === undefined) return { refusal: replies.syntax('RCPT TO:<address>') }
  const split = splitPath(text)
  if (split === undefined) return { refusal: replies.BAD_RECIPIENT, illegal: text }
  const { path } = split
  const recipient = parsePath(path, rules.origin)
  if (recipient === undefined || isOption(recipient) || recipient.given === '""') return { refusal: replies.BAD_RECIPIENT, illegal: path }
  const parsed = parseRecipientParameters(split.rest, rules)
  return 'refusal' in parsed ? parsed : { value: { ...recipient, path, parameters: parsed.value } }
}

/** True for an address that begins with a minus, which a program could take for an option (Postfix allow_min_user = no). */
const isOption = ({ given }: PathAddress): boolean => /^"?-/.test(given)

interface VerifyArgument {
  readonly address: string
  /** The path as sent, without brackets. */
  readonly path: string
  /** The argument as sent, without SMTPUTF8, for replies. */
  readonly text: string
  readonly isUtf8: boolean
}

type VerifyText = Pick<VerifyArgument, 'text' | 'isUtf8'>

/** Splits the argument of VRFY. SMTPUTF8 at its end is a parameter (RFC 6531 §3.7.4.2) unless the extension is not offered. */
export function splitVerify(argument: string, { withUtf8 }: Pick<ParameterRules, 'withUtf8'>): VerifyText {
  const isUtf8 = withUtf8 && /(?:^|\s)SMTPUTF8$/i.test(argument)
  return { text: isUtf8 ? argument.replace(/\s*SMTPUTF8$/i, '') : argument, isUtf8 }
}

export function parseVerify({ text, isUtf8 }: VerifyText, origin: string): ParsedArgument<VerifyArgument> {
  const { path, rest } = splitPath(text) ?? { path: text, rest: text }
  const address = rest === '' ? parseAddress(path, origin) : undefined
  if (address === undefined) return { refusal: replies.BAD_RECIPIENT, illegal: path }
  if (isInternational(address) && !isUtf8) return { refusal: replies.NEEDS_SMTPUTF8 }
  return { value: { address, path, text, isUtf8 } }
}
