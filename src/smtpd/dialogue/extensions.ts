/** The extensions that a session announces in its reply to EHLO, in Postfix's order. */
import type { Config } from '../../config/options.ts'
import { formatInstant } from '../../mail/message-times.ts'
import { SECOND, type WallTime } from '../../system/clock.ts'
import type { EhloKeyword } from '../../config/values/values.ts'
import { XCLIENT_KEYWORD, XFORWARD_KEYWORD } from './client-attributes.ts'
import { shortestBy, type TimeSettings } from './esmtp-parameters.ts'

/** An instant without the fraction, so that no client may ask for a later one. */
const wholeSeconds = (at: WallTime): string => formatInstant(Math.floor(at / SECOND) * SECOND)

export interface ExtensionFacts {
  readonly settings: Pick<Config, 'message_size_limit' | 'disable_vrfy_command' | 'smtpd_discard_ehlo_keywords'> & TimeSettings
  readonly offersTls: boolean
  readonly offersAuth: boolean
  readonly offersXclient: boolean
  readonly offersXforward: boolean
  /** True for a client that may hold its mail back. */
  readonly offersHold: boolean
  /** True when classes have priorities. */
  readonly offersPriority: boolean
  readonly now: WallTime
}

export function announced({
  settings,
  offersTls,
  offersAuth,
  offersXclient,
  offersXforward,
  offersHold,
  offersPriority,
  now,
}: ExtensionFacts): readonly string[] {
  const { message_size_limit: limit, disable_vrfy_command: withoutVrfy, smtpd_discard_ehlo_keywords: discarded } = settings
  const { smtpd_future_release_limit: longest, smtpd_deliver_by_enable: offersDeliverBy } = settings
  const shortest = shortestBy(settings)
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
    ['futurerelease', `FUTURERELEASE ${Math.floor(longest / SECOND)} ${wholeSeconds(now + longest)}`, offersHold && longest > 0],
    ['deliverby', shortest > 0 ? `DELIVERBY ${shortest}` : 'DELIVERBY', offersDeliverBy],
    ['mt-priority', 'MT-PRIORITY', offersPriority],
  ]
  return lines.filter(([keyword, , offered]) => offered && !discarded.includes(keyword)).map(([, line]) => line)
}
