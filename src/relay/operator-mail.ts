/** Queues mail of the relay to its operators: signed, from MAILER-DAEMON, with a null sender so that no notice is sent about it. */
import type { NoticeEntry } from '../bounce/notice-writer.ts'
import { isInternational } from '../mail/address.ts'
import { mailDate } from '../mail/mail-date.ts'
import { NOT_SHOWN, shownFieldsIn } from '../mail/mime/shown-fields.ts'
import type { DestinationName, Message } from '../mail/message.ts'
import type { Intake } from '../queue/intake/intake.ts'
import { inChunks } from '../store/chunks.ts'
import type { Clock } from '../system/clock.ts'
import type { Config } from '../config/options.ts'

export interface OperatorMail {
  readonly subject: string
  /** Lines of text. */
  readonly text: string
  readonly recipients: readonly string[]
}

interface OperatorMailDeps {
  readonly intake: Pick<Intake, 'take'>
  readonly entry: Pick<NoticeEntry, 'begin' | 'signed'>
  readonly clock: Pick<Clock, 'wall' | 'zone'>
  readonly config: Pick<Config, 'myorigin' | 'mail_name' | 'queue_index_headers'>
}

/** Resolves when the mail is in the queue. Rejects with StoreUnavailable, and when a DKIM key cannot sign. */
export async function queueOperatorMail({ subject, text, recipients }: OperatorMail, deps: OperatorMailDeps): Promise<void> {
  const { intake, entry, clock, config } = deps
  const { id, queueId, arrivedAt } = entry.begin()
  const messageId = `<${queueId}.report@${config.myorigin}>`
  const isAscii = !isInternational(`${subject}${text}`)
  const lines = [
    `From: ${config.mail_name} <MAILER-DAEMON@${config.myorigin}>`,
    `To: ${recipients.join(',\r\n ')}`,
    `Subject: ${subject}`,
    `Date: ${mailDate(arrivedAt, clock)}`,
    `Message-ID: ${messageId}`,
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    `Content-Type: text/plain; charset=${isAscii ? 'us-ascii' : 'utf-8'}`,
    `Content-Transfer-Encoding: ${isAscii ? '7bit' : '8bit'}`,
    '',
    ...text.replace(/\n$/, '').split('\n'),
    '',
  ]
  const content = Buffer.from(lines.join('\r\n'))
  const message: Message = {
    id,
    createdAt: arrivedAt,
    arrivedAt,
    sender: '',
    size: content.length,
    contentId: id,
    smtputf8: recipients.some(isInternational),
    bodyType: isAscii ? '7bit' : '8bitmime',
    messageId,
    ...(config.queue_index_headers ? shownFieldsIn(content) : NOT_SHOWN),
  }
  const chunks = inChunks(content)
  const signed = await entry.signed(message, chunks)
  await intake.take({ message: signed, recipients: recipients.map((address) => ({ address })), content: chunks, client: null })
}

/** Tells that the recipients of a destination are not put on the suppression list. */
export const brakeMail = (destination: DestinationName): Omit<OperatorMail, 'recipients'> => ({
  subject: `Too many unknown recipients at ${destination}`,
  text: `Within an hour, ${destination} has refused more than a fifth of at least 20 recipients as unknown.
Its directory may be down, so that none of them is put on the suppression list, and
those of the last hour were removed from it. Listing goes on when fewer are refused.

deferd history list --status 5.1.1 --since 1h
`,
})
