/** Mail that remote servers have kept, as the lab answers with it. */
import { z } from 'zod'
import { parseNotice } from '../bounce/dsn-parser.ts'
import { isoInstant } from '../mail/mail-date.ts'
import { patternMatcher } from '../patterns/filter-pattern.ts'
import type { Mail } from '../testkit/results/mailbox.ts'
import type { ReceivedMail } from '../testkit/remote/remote-events.ts'
import { inSeconds } from '../testkit/options/time.ts'
import type { World } from '../testkit/world.ts'
import { codesIn, linksIn, textOfHtml } from './mail/codes-and-links.ts'
import { parseMail } from '../mail/mime/parsed-mail.ts'

const mailMembers = {
  id: z.int().describe('number in the order of arrival'),
  at: z.number().describe('seconds since the start of the world'),
  from: z.string().describe('reverse-path'),
  to: z.array(z.string()).describe('all recipients of the transaction'),
  subject: z.string(),
  size: z.int(),
  tls: z.boolean(),
}

export const mailShape = z.object(mailMembers).meta({ id: 'Mail' })

const noticeShape = z.object({
  action: z.string(),
  recipients: z.array(
    z.object({
      recipient: z.string(),
      action: z.string(),
      status: z.string(),
      diagnostic: z.string().nullable(),
      remote_mta: z.string().nullable(),
      will_retry_until: z.string().nullable(),
    }),
  ),
  text: z.string(),
  original: z.string().nullable(),
})

export const wholeMailShape = z
  .object({
    ...mailMembers,
    headers: z.array(z.object({ name: z.string().describe('in lower case'), value: z.string() })),
    text: z.string().nullable(),
    html: z.string().nullable(),
    attachments: z.array(
      z.object({
        name: z.string().nullable(),
        type: z.string(),
        size: z.int(),
        cid: z.string().nullable(),
        sha256: z.string(),
        part: z.int().describe('its octets are at /mails/{id}/parts/{part}'),
      }),
    ),
    signatures: z.array(
      z.object({ domain: z.string(), selector: z.string(), algorithm: z.string(), verified: z.boolean(), why: z.string().nullable() }),
    ),
    notice: noticeShape.nullable().describe('the notice (RFC 3464) that the mail is; null for other mail'),
    code: z.string().nullable().describe('the only code; null for none, and for several'),
    codes: z.array(z.string()).describe('words that look like a confirmation code'),
    links: z.array(z.object({ url: z.string(), text: z.string() })),
    passed: z.number().describe('seconds of the world that the call has advanced'),
  })
  .meta({ id: 'WholeMail' })

/** A mail with its number in the order of arrival, from 1. */
export interface NumberedMail {
  readonly id: number
  readonly mail: ReceivedMail
}

/** Mail of an address, newest last. */
export const mailsOf = ({ received }: Pick<World, 'received'>, address: string): readonly NumberedMail[] =>
  received.flatMap((mail, at) => (mail.recipients.includes(address) ? [{ id: at + 1, mail }] : []))

export const listedMail = ({ id, mail }: NumberedMail): z.output<typeof mailShape> => ({
  id,
  at: inSeconds(mail.at),
  from: mail.sender,
  to: [...mail.recipients],
  subject: parseMail(mail.content).subject,
  size: mail.content.length,
  tls: mail.tls,
})

function noticeJson(content: Uint8Array): z.output<typeof noticeShape> | null {
  const notice = parseNotice(content)
  if (notice === null) return null
  const recipients = notice.recipients.map(({ recipient, action, status, diagnostic = null, remoteMta = null, willRetryUntil }) => ({
    recipient,
    action,
    status,
    diagnostic,
    remote_mta: remoteMta,
    will_retry_until: willRetryUntil === undefined ? null : isoInstant(willRetryUntil),
  }))
  return { action: notice.action, recipients, text: notice.text, original: notice.original ?? null }
}

interface WholeMailOptions {
  /** Pattern of the links to be answered; undefined for all. */
  readonly link: string | undefined
  readonly passed: number
}

export function wholeMail(world: World, numbered: NumberedMail, { link, passed }: WholeMailOptions): z.output<typeof wholeMailShape> {
  const { content, recipients } = numbered.mail
  const { headers, text, html, attachments } = parseMail(content)
  const codes = codesIn(text ?? textOfHtml(html ?? ''))
  const isWanted = link === undefined ? () => true : patternMatcher(link)
  const links = linksIn({ html, text }).filter((one) => isWanted(one.url) || isWanted(one.text))
  const [address = ''] = recipients
  const own = world
    .mailbox(address)
    .mails()
    .find(({ raw }) => raw === content) as Mail
  return {
    ...listedMail(numbered),
    headers: [...headers],
    text,
    html,
    attachments: attachments.map((one) => ({ ...one })),
    signatures: own.signatures.map((one) => ({ ...one })),
    notice: noticeJson(content),
    code: codes.length === 1 ? (codes[0] ?? null) : null,
    codes: [...codes],
    links: links.map((one) => ({ ...one })),
    passed,
  }
}
