/** Queues the mail of a report about TLS: signed, without notices, and delivered even where TLS fails. */
import type { MessageSigning } from '../dkim/message-signing.ts'
import { withPrepended } from '../dkim/stored-signature.ts'
import { domainOf } from '../mail/address.ts'
import { mailDate } from '../mail/mail-date.ts'
import { NOT_SHOWN, shownFieldsIn } from '../mail/mime/shown-fields.ts'
import type { Message } from '../mail/message.ts'
import { errorMessage } from '../system/caught-error.ts'
import type { Clock } from '../system/clock.ts'
import type { Intake } from '../queue/intake/intake.ts'
import { inChunks } from '../store/chunks.ts'
import type { ReportFacts } from '../tls-reports/report-json.ts'
import { REPORT_FIELD, reportMail } from '../tls-reports/report-mail.ts'

interface ReportEntryDeps {
  readonly intake: Pick<Intake, 'begin' | 'take'>
  readonly clock: Pick<Clock, 'wall' | 'zone'>
  readonly sender: () => string
  readonly signing: () => MessageSigning | null
  /** Whether Subject and From are kept (queue_index_headers). */
  readonly keepsTexts: () => boolean
}

/** Resolves with the reason of a failure; undefined when the mail is queued. */
export async function queueReport(report: ReportFacts, recipient: string, deps: ReportEntryDeps): Promise<string | undefined> {
  const { intake, clock, sender, signing, keepsTexts } = deps
  const from = sender()
  try {
    const { id, queueId, arrivedAt } = intake.begin()
    const content = reportMail({ ...report, sender: from, recipient, date: mailDate(arrivedAt, clock) })
    const chunks = inChunks(content)
    const message: Message = {
      id,
      createdAt: arrivedAt,
      arrivedAt,
      sender: from,
      size: content.length,
      contentId: id,
      smtputf8: false,
      bodyType: '7bit',
      messageId: `<${report.id}>`,
      ...(keepsTexts() ? shownFieldsIn(content) : NOT_SHOWN),
    }
    const signed = await signing()?.signed(queueId, message, chunks)
    const signatures = signed?.prependedHeaders ?? ''
    if (!/^DKIM-Signature:/i.test(signatures))
      return `such mail must be signed, and no [dkim] table has keys for ${domainOf(from)} (smtp_tlsrpt_sender)`
    const marked = withPrepended(message, `${signatures}${REPORT_FIELD}`)
    await intake.take({ message: marked, recipients: [{ address: recipient, notify: 'never' }], content: chunks, client: null })
    return undefined
  } catch (error) {
    return errorMessage(error)
  }
}
