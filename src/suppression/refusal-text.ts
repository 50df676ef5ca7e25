/** The text that refuses a recipient on the suppression list. */
import { isoInstant } from '../mail/mail-date.ts'
import type { SmtpReply } from '../mail/smtp-reply.ts'
import type { Suppression } from '../store/records/suppression-entry.ts'
import type { WallView } from '../system/wall-view.ts'

/** Maximum number of characters of the quoted reply: a line of SMTP has at most 512 octets. */
const QUOTED = 160

const dateOf = ({ since, firstHitAt }: Suppression, wall: WallView): string => isoInstant(wall.of(since ?? firstHitAt ?? 0)).slice(0, 10)

/** `on the suppression list since 2026-11-01 (bounce, "550 5.1.1 no such user")` */
export function listedText(entry: Suppression, wall: WallView): string {
  const { reply, reason } = entry
  const quoted = reply === null ? '' : `, "${reply.replaceAll(/[^ -~]/gu, '?').slice(0, QUOTED)}"`
  return `on the suppression list since ${dateOf(entry, wall)} (${reason}${quoted})`
}

/** `path` is the recipient as the client gave it. */
export const suppressedReply = (path: string, entry: Suppression, wall: WallView): SmtpReply => ({
  code: 550,
  status: '5.1.1',
  text: `<${path}>: Recipient address rejected: ${listedText(entry, wall)}; see deferd suppression show`,
})
