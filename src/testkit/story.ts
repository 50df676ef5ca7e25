/** What became of a recipient, told line by line: pure. */
import { SECOND } from '../mail/clock.ts'
import type { Entry } from './ledger.ts'
import { sinceText } from './time.ts'

/** One line for each event, oldest first; times count from the acceptance of the message they are about. */
export function tell(entries: readonly Entry[]): readonly string[] {
  const acceptedAt = new Map(entries.flatMap((entry) => (entry.kind === 'accepted' ? [[entry.queueId, entry.when] as const] : [])))
  const senders = new Map(entries.flatMap((entry) => (entry.kind === 'accepted' ? [[entry.queueId, entry.sender] as const] : [])))
  const several = new Set(entries.map(({ queueId }) => queueId)).size > 1
  return entries.map((entry) => {
    const since = sinceText(
      entry.kind === 'attempt' ? entry.attempt.at * SECOND : entry.when - (acceptedAt.get(entry.queueId) ?? entry.when),
    )
    const which = several ? ` (${entry.queueId})` : ''
    return `${since} ${inWords(entry, senders.get(entry.queueId) ?? '')}${which}`
  })
}

const NEWS = { failure: 'failure', delay: 'delay', success: 'delivery' } as const

const nameOf = (sender: string): string => (sender === '' ? '<>' : sender)

function inWords(entry: Entry, sender: string): string {
  switch (entry.kind) {
    case 'accepted':
      return `accepted from ${nameOf(entry.sender)}, ${entry.size} bytes`
    case 'attempt': {
      const { attempt, tried } = entry
      if (!tried) return `${attempt.outcome} between two tries: ${attempt.reason}`
      const words = attempt.reply === undefined ? attempt.reason : `${attempt.host ?? 'somebody'} said ${attempt.reply} at ${attempt.stage}`
      return `${attempt.outcome}: ${words}`
    }
    case 'notice':
      return `${entry.to === 'sender' ? nameOf(sender) : 'postmaster'} is told of the ${NEWS[entry.notice]}`
    case 'operated':
      return `${entry.operation} by ${entry.by}`
  }
}
