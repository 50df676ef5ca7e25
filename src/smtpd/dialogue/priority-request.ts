/** A request for a priority (MT-PRIORITY, RFC 6710): which class and priority the message gets, and the reply to MAIL. */
import { LookupFailed } from '../../rewriting/lookup-table.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import type { ClassChoice, ClassFacts, GrantedPriority } from '../../queue/intake/class-choice.ts'
import type { Events } from '../../telemetry/events.ts'
import { NO_CLASS_NOW, otherPriority, SENDER_OK } from './replies.ts'

export type PriorityChoice = Pick<ClassChoice, 'hasPriorities' | 'granted'>

interface Answered {
  readonly reply: SmtpReply
  /** Undefined for a client that asks for none, and when the reply refuses. */
  readonly granted?: GrantedPriority | undefined
}

/** The reply to MAIL with this priority; undefined for none. A lookup without a usable result is logged, and refuses. */
export function answerPriority(
  priority: number | undefined,
  facts: Omit<ClassFacts, 'asked'>,
  { classes, events }: { readonly classes: PriorityChoice | null; readonly events: Pick<Events, 'emit'> },
): Answered {
  if (priority === undefined || classes === null) return { reply: SENDER_OK }
  try {
    const granted = classes.granted(priority, facts)
    return { reply: granted.priority === priority ? SENDER_OK : otherPriority(granted.priority), granted }
  } catch (error) {
    if (!(error instanceof LookupFailed)) throw error
    events.emit({ kind: 'note', level: 'error', text: `MAIL refused, try again later: ${error.message}` })
    return { reply: NO_CLASS_NOW }
  }
}
