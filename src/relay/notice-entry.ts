/** Queues notices, signed and with rewritten recipients, as Postfix does (docs/rewriting.md). */
import type { NoticeEntry } from '../bounce/notice-writer.ts'
import type { MessageSigning } from '../dkim/message-signing.ts'
import { queueIdOf } from '../mail/message.ts'
import type { EnvelopeRecipient } from '../mail/envelope.ts'
import type { Intake } from '../queue/intake/intake.ts'
import { LookupFailed } from '../rewriting/lookup-table.ts'
import type { Rewriting } from '../rewriting/rewriting.ts'
import type { Events } from '../telemetry/events.ts'

interface NoticeEntryDeps {
  readonly intake: Intake
  readonly events: Events
  readonly rewriting: () => Rewriting | null
  readonly signing: () => MessageSigning | null
}

/** The entry for notices. A notice whose recipients cannot be looked up keeps them, so that it is not lost. */
export function noticeEntry({ intake, events, rewriting, signing }: NoticeEntryDeps): NoticeEntry {
  const rewritten = (recipients: readonly EnvelopeRecipient[]): readonly EnvelopeRecipient[] => {
    try {
      return rewriting()?.recipients(recipients) ?? recipients
    } catch (error) {
      if (!(error instanceof LookupFailed)) throw error
      events.emit({ kind: 'note', level: 'error', text: `a notice keeps its recipients: ${error.message}` })
      return recipients
    }
  }
  return {
    begin: () => intake.begin(),
    signed: async (message, content) => (await signing()?.signed(queueIdOf(message), message, content)) ?? message,
    prepare: (entry) => intake.prepare({ ...entry, recipients: rewritten(entry.recipients) }),
  }
}
