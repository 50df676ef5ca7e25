/** Reports of the scheduler and the intake to MAILER-DAEMON. */
import type { Message, MessageId } from '../mail/message.ts'

export interface NoticePort {
  /** A notice about the message is due. */
  noticeDue(message: MessageId): void
  /** No recipient of the message is in memory, which may end the round of its notices. */
  atRest(message: MessageId): void
  /** New mail waits in the store for a dead or suspended destination, or for room: no attempt schedules its delay warning. */
  waits(message: Message): void
}
