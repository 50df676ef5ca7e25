/** Contents that stay after their messages have left a queue in memory, and mail that is sent again with them. */
import type { OperationRound } from '../records/audit-log.ts'
import { resentRecipients, type DepartedMail, type KeptLimits, type Resending } from '../returned-mail.ts'
import type { NewMessage } from '../new-message.ts'
import type { Operated } from '../records/audit-records.ts'
import { BEGIN_ROUND, END_ROUND } from '../records/operation-round.ts'
import { hasContent } from './held-contents.ts'
import { KEPT_CONTENT_ROWS } from '../records/kept-content.ts'
import { eraseHeld } from './held-erasure.ts'
import type { MemoryQueue } from './queue-state.ts'

/** `enter` queues a message with the content that the queue has. */
export function departedMailOf(queue: MemoryQueue, enter: (entry: NewMessage) => void): DepartedMail {
  const kept = KEPT_CONTENT_ROWS.heldIn(queue.records)
  const resendOne = (one: Resending): boolean => {
    const { message, entry } = one
    const gone = queue.history.get(message)
    if (gone === undefined || kept.get(String(message))?.contentId !== entry.message.contentId) return false
    const recipients = resentRecipients(gone.details.recipients, one)
    if (recipients === null) return false
    queue.history.set(message, { ...gone, details: { ...gone.details, recipients } })
    enter(entry)
    return true
  }
  return {
    resend: async (mail: readonly Resending[], round: OperationRound) => {
      if (!BEGIN_ROUND.held(queue.records, round)) return null
      const sent = mail.map(resendOne)
      const operated = mail.flatMap(({ entry }, n): Operated[] => (sent[n] === true ? [[entry.message.id, 'queued', null]] : []))
      END_ROUND.held(queue.records, round, operated.length, operated)
      return sent
    },
    dropKept: async ({ until, bytes: most }: KeptLimits) => {
      let bytes = [...kept.values()].reduce((sum, { size }) => sum + size, 0)
      for (const row of [...kept.values()].toSorted((a, b) => a.until - b.until || a.message - b.message)) {
        if (row.until > until && bytes <= most) break
        kept.delete(String(row.message))
        bytes -= row.size
        if (!hasContent(queue, row.contentId)) queue.bodies.delete(row.contentId)
      }
      return { bytes, more: false }
    },
    erase: async (slice) => eraseHeld(queue, slice),
  }
}
