/** Mail that smarthosts have accepted, by the number of the message, in a form in which that of two relays can be compared. */
import { withoutCopies } from '../rewriting-comparison.ts'
import type { AcceptedMail } from './smarthosts.ts'

/** Fields that are different in each relay by their nature, unless they were submitted. */
const GENERATED = /^(?:(?:Resent-)?Message-Id|(?:Resent-)?Date): (?!.*(?:given\.test|20 Nov 2026)).*/i

/** Addresses of REDIRECT. */
const REDIRECTED = /^(?:boss@c|keeper@far)\.test$/

/** One line of text for each recipient of each delivery, sorted, by the number of the message. */
export function outcomesOf(mails: readonly AcceptedMail[]): ReadonlyMap<number, readonly string[]> {
  const lines = mails.flatMap((mail) => mail.recipients.map((one) => [numberOf(mail.content), lineOf(mail, one)] as const))
  const byNumber = Map.groupBy(lines, ([number]) => number)
  return new Map([...byNumber].map(([number, all]) => [number, all.map(([, line]) => line).toSorted()]))
}

const numberOf = (content: string): number => Number(/^(?:X-Number: |Subject: Cron .* job )(\d+)/m.exec(content)?.[1] ?? -1)

function lineOf(mail: AcceptedMail, { address, parameters }: AcceptedMail['recipients'][number]): string {
  const { host, login, sender, mailParameters } = mail
  const wishes = mailParameters
    .split(' ')
    .filter((one) => !/^(?:SIZE|BODY)=/.test(one))
    .toSorted()
    .join(' ')
  const ofRecipient = hasOtherParameters(address, mail.content) ? '' : withoutCopies(address, parameters)
  return `${host} ${login}: <${sender}> ${wishes} to <${address}> ${ofRecipient}\n${contentOf(mail.content)}`
}

/**
 * True for recipients with other DSN parameters than those of Postfix (docs/postfix-differences.md, docs/checks.md): those of notices and of
 * REDIRECT, and those of programs, for which Postfix gives the canonical address as ORCPT.
 */
const hasOtherParameters = (address: string, content: string): boolean =>
  REDIRECTED.test(address) || content.includes('report-type=delivery-status') || isOfProgram(content.split('\r\n\r\n', 1)[0] ?? '')

function contentOf(content: string): string {
  if (content.includes('report-type=delivery-status')) return reportOf(content)
  const [header = '', ...body] = content.split('\r\n\r\n')
  const fields = header
    .split(/\r\n(?![ \t])/)
    .filter((field) => !/^(?:Received|Delivered-To):/i.test(field))
    .map((field) => field.replace(GENERATED, '(generated)').trimEnd())
  const text = [isOfProgram(header) ? fields.toSorted() : fields, '', body.join('\r\n\r\n')].flat().join('\n')
  const boundary = /boundary="([^"]+)"/.exec(header)?.[1]
  return boundary === undefined ? text : text.replaceAll(boundary, 'BOUNDARY')
}

/** Mail of sendmail, whose added fields have another place (docs/postfix-differences.md). */
const isOfProgram = (header: string): boolean => /^(?:X-PHP-Originating-Script|X-Cron-Env|X-Program|X-Local):/m.test(header)

/** The fields of a notice about addresses and outcomes. */
const reportOf = (content: string): string =>
  ['(notice)', ...(content.match(/^(?:Final-Recipient|Original-Recipient|Action|Status): .*/gm) ?? [])].join('\n')
