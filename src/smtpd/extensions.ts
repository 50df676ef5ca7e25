/** The extensions that a session announces in its reply to EHLO, in Postfix's order. */
import type { Config } from '../config/options.ts'
import type { EhloKeyword } from '../config/values/values.ts'
import { XCLIENT_KEYWORD, XFORWARD_KEYWORD } from './client-attributes.ts'

export interface ExtensionFacts {
  readonly settings: Pick<Config, 'message_size_limit' | 'disable_vrfy_command' | 'smtpd_discard_ehlo_keywords'>
  readonly offersTls: boolean
  readonly offersAuth: boolean
  readonly offersXclient: boolean
  readonly offersXforward: boolean
}

export function announced({ settings, offersTls, offersAuth, offersXclient, offersXforward }: ExtensionFacts): readonly string[] {
  const { message_size_limit: limit, disable_vrfy_command: withoutVrfy, smtpd_discard_ehlo_keywords: discarded } = settings
  const lines: readonly (readonly [EhloKeyword, string, boolean])[] = [
    ['pipelining', 'PIPELINING', true],
    ['size', limit > 0 ? `SIZE ${limit}` : 'SIZE', true],
    ['vrfy', 'VRFY', !withoutVrfy],
    ['etrn', 'ETRN', true],
    ['starttls', 'STARTTLS', offersTls],
    ['auth', 'AUTH PLAIN LOGIN', offersAuth],
    ['xclient', XCLIENT_KEYWORD, offersXclient],
    ['xforward', XFORWARD_KEYWORD, offersXforward],
    ['enhancedstatuscodes', 'ENHANCEDSTATUSCODES', true],
    ['8bitmime', '8BITMIME', true],
    ['dsn', 'DSN', true],
    ['smtputf8', 'SMTPUTF8', true],
    ['chunking', 'CHUNKING', true],
  ]
  return lines.filter(([keyword, , offered]) => offered && !discarded.includes(keyword)).map(([, line]) => line)
}
