/** Timeline of a recipient as text. Pure. */
import { SECOND } from '../../system/clock.ts'
import type { Entry } from './recipient-log.ts'
import { sinceText } from '../options/time.ts'

/** One line per event, oldest first. Times are relative to the acceptance of the message. */
export function timelineOf(entries: readonly Entry[]): readonly string[] {
  const acceptedAt = new Map(entries.flatMap((entry) => (entry.kind === 'accepted' ? [[entry.queueId, entry.when] as const] : [])))
  const senders = new Map(entries.flatMap((entry) => (entry.kind === 'accepted' ? [[entry.queueId, entry.sender] as const] : [])))
  const several = new Set(entries.flatMap(({ queueId }) => queueId ?? [])).size > 1
  return entries.map((entry) => {
    const { queueId } = entry
    if (queueId === null) return `${sinceText(0)} ${describe(entry, '')}`
    const since = sinceText(entry.kind === 'attempt' ? entry.attempt.at * SECOND : entry.when - (acceptedAt.get(queueId) ?? entry.when))
    const which = several ? ` (${queueId})` : ''
    return `${since} ${describe(entry, senders.get(queueId) ?? '')}${which}`
  })
}

const nameOf = (sender: string): string => (sender === '' ? '<>' : sender)

function describe(entry: Entry, sender: string): string {
  switch (entry.kind) {
    case 'accepted':
      return `accepted from ${nameOf(entry.sender)}, ${entry.size} bytes`
    case 'attempt': {
      const { attempt, tried } = entry
      if (!tried) return `${attempt.outcome} between two attempts: ${attempt.reason}`
      const { reply, host = 'the server', stage, reason } = attempt
      return `${attempt.outcome}: ${reply === undefined ? reason : `${host} replied ${reply} at ${stage}`}`
    }
    case 'notice':
      return `${entry.notice} notice to ${entry.to === 'sender' ? nameOf(sender) : 'postmaster'}`
    case 'suppressed':
      return `refused: on the suppression list of ${entry.scope} (${entry.reason})`
    case 'operated':
      return `${entry.operation} by ${entry.by}`
  }
}
