/**
 * Why a recipient is tried next when it is: the rule and the parameters that set the time, and what would have to
 * change for it to be tried at another.
 */
import { formatTime } from '../backoff/time-text.ts'
import { settingsFor } from '../config/destination-settings.ts'
import type { Config } from '../config/options.ts'
import type { Instant } from '../mail/clock.ts'
import { domainOf } from '../mail/address.ts'
import type { Recipient } from '../queue/message.ts'
import type { MessageStory } from '../queue/reader.ts'
import type { DestinationRecord } from '../queue/store.ts'
import type { WaitsFor } from './standing.ts'

interface RuleFacts {
  readonly recipient: Recipient
  readonly story: MessageStory
  readonly waits: WaitsFor
  /** When it is tried next; null while only an operator can set it moving. */
  readonly next: Instant | null
  readonly config: Config
}

/** The rule that set the time of the next attempt; null for a recipient that waits for nothing. */
export function ruleFor({ recipient, story, waits, next, config }: RuleFacts): string | null {
  const { values, table } = settingsFor(config, domainOf(recipient.address), recipient.destination)
  const source = table === null ? '' : ` ([destination."${table}"])`
  const lifetime = story.message.sender === '' ? 'bounce_queue_lifetime' : 'maximal_queue_lifetime'
  switch (waits) {
    case 'nothing':
      return null
    case 'release':
    case 'inspection':
    case 'restore':
      return 'nothing is tried while an operator keeps it aside'
    case 'resume':
      return 'nothing is tried while its destination is suspended'
    default:
  }
  if (story.forcedExpire) return 'an operator gave it up: it is returned to the sender when its turn comes'
  const limits = `minimal_backoff_time = ${formatTime(values.minimal_backoff_time)}, maximal_backoff_time = ${formatTime(values.maximal_backoff_time)}`
  // Its own time has come or comes first; it is the destination that makes it wait.
  if (waits === 'probe' && next !== recipient.dueAt)
    return `it is due, but its destination does not answer and is probed at doubling intervals; ${limits}${source}`
  if (recipient.dueAt >= recipient.expiresAt)
    return `the last attempt, at the end of ${lifetime} = ${formatTime(values[lifetime])}${source}`
  if (recipient.steps === 0) return 'new mail is tried at once'
  const jitter = values.retry_jitter > 0 ? `, retry_jitter = ${values.retry_jitter}` : ''
  return `wait ${recipient.steps} of retry_backoff = ${values.retry_backoff}${waited(recipient, story)}; ${limits}${jitter}${source}`
}

/** How long the wait is that began with the last attempt, where history still has it. */
function waited(recipient: Recipient, { history }: MessageStory): string {
  const last = history.findLast((attempt) => attempt.recipient === recipient.id)
  return last === undefined || recipient.dueAt <= last.at ? '' : `: ${formatTime(recipient.dueAt - last.at)} after the last attempt`
}

/** What an operator can do about it, as a command; null when there is nothing to do. */
export function remedyFor(waits: WaitsFor, queueId: string, record: DestinationRecord | undefined): string | null {
  switch (waits) {
    case 'due-time':
      return `to try it now: deferd queue flush ${queueId}`
    case 'probe':
      return `${record?.name ?? 'its destination'} must answer again; to try it now: deferd queue flush ${queueId}`
    case 'resume':
      return `deferd destination resume ${record?.name ?? ''}`
    case 'release':
      return `deferd queue release ${queueId}`
    case 'restore':
      return `deferd queue restore ${queueId}`
    case 'inspection':
      return `it cannot be read (see the log); to remove it: deferd queue delete ${queueId}`
    case 'delivery':
    case 'nothing':
      return null
    default:
      return null
  }
}
