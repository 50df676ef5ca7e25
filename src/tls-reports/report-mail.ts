/** The mail that carries a report (RFC 8460 §5.3). Pure. */
import { TLS_OPTIONAL } from '../delivery/tls/tls-stage.ts'
import { domainOf } from '../mail/address.ts'
import { compressed, reportFile, type ReportFacts } from './report-json.ts'

interface ReportMail extends ReportFacts {
  readonly sender: string
  readonly recipient: string
  /** Value of the Date field (RFC 5322 §3.6.1). */
  readonly date: string
}

export function reportMail(mail: ReportMail): Buffer {
  const { domain, sender, recipient, date, id } = mail
  const submitter = domainOf(sender)
  const boundary = `report.${id.replaceAll(/[^A-Za-z0-9.]/g, '.')}`.slice(0, 70)
  const body =
    compressed(mail)
      .toString('base64')
      // Maximum length of a line (RFC 2045 §6.8).
      .match(/.{1,76}/g) ?? []
  const lines = [
    `From: ${sender}`,
    `To: ${recipient}`,
    `Subject: Report Domain: ${domain} Submitter: ${submitter}`,
    ` Report-ID: <${id}>`,
    `Date: ${date}`,
    `Message-ID: <${id}>`,
    `TLS-Report-Domain: ${domain}`,
    `TLS-Report-Submitter: ${submitter}`,
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type="tlsrpt";',
    ` boundary="${boundary}"`,
    '',
    `--${boundary}`,
    'Content-Type: text/plain; charset="us-ascii"',
    'Content-Transfer-Encoding: 7bit',
    '',
    `This is an aggregate TLS report (RFC 8460) from ${submitter}`,
    `about its sessions with the mail hosts of ${domain}.`,
    '',
    `--${boundary}`,
    'Content-Type: application/tlsrpt+gzip',
    'Content-Transfer-Encoding: base64',
    'Content-Disposition: attachment;',
    ` filename="${reportFile(mail)}"`,
    '',
    ...body,
    `--${boundary}--`,
    '',
  ]
  return Buffer.from(lines.join('\r\n'))
}

/** Field that precedes the mail: it is delivered even where TLS fails, which is what it reports. */
export const REPORT_FIELD = TLS_OPTIONAL

/** The address of a `mailto:` URI (RFC 6068), without its header fields; undefined when it is none. */
export function mailtoAddress(uri: string): string | undefined {
  const [, written = ''] = /^mailto:([^?]+)/i.exec(uri) ?? []
  try {
    const address = decodeURIComponent(written)
    return /^[!-?A-~]+@[A-Za-z0-9.-]+$/.test(address) ? address : undefined
  } catch {
    return undefined
  }
}
