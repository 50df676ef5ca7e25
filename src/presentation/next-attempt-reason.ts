/**
 * Explains the time of a recipient's next attempt: the rule and parameters that determine the time, and the command that would
 * change it.
 */
import { shownSender } from '../mail/envelope.ts'
import { isOrdered, namesInstant } from '../mail/message-times.ts'
import { formatDuration } from '../system/duration.ts'
import type { DestinationPolicies, DestinationPolicy } from '../config/destination-policies.ts'
import type { SettingName } from '../config/destination-settings.ts'
import type { QueueTime } from '../system/clock.ts'
import type { Recipient } from '../mail/message.ts'
import { attemptLimit } from '../queue/scheduler/due/attempt-limit.ts'
import type { MessageDetails } from '../store/queue-reader.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import type { DestinationRecord } from '../store/queue-store.ts'
import { recordedState } from '../store/destination-status.ts'
import { span } from './text.ts'
import { endWords } from './expiry-words.ts'
import { blockedBy } from './destination-state.ts'
import { quotaReason, type WaitsFor } from './recipient-status.ts'

interface RuleFacts {
  readonly recipient: Recipient
  readonly story: MessageDetails
  readonly waits: WaitsFor
  /** Time of the next attempt; null when an operator must act first. */
  readonly next: QueueTime | null
  readonly policies: DestinationPolicies
  /** The destination in the daemon's memory; undefined when it is not there. */
  readonly live: LiveDestination | undefined
  /** The destination as it is recorded; undefined for one without a record. */
  readonly record: DestinationRecord | undefined
}

/** Why a suspended destination gets no attempts. */
const suspendedText = ({ record }: Pick<RuleFacts, 'record'>): string => {
  const { provider, also } = record?.suspension ?? {}
  const whole = provider !== undefined ? ` with provider ${provider}` : also === undefined ? '' : `, also with provider ${also.provider}`
  return `no attempts while the destination is suspended${whole}`
}

const DEAD = 'the destination is dead and probed at doubling intervals'

/** The rule that determined the time of the next attempt. For a recipient in a final state the limit of attempts that it has reached, else null. */
export function ruleFor(facts: RuleFacts): string | null {
  switch (facts.waits) {
    case 'nothing':
      return facts.recipient.last?.limit ?? null
    case 'inspection':
      return `no attempts: ${facts.story.why ?? 'the message is unreadable'}`
    case 'release':
    case 'restore':
      return 'no attempts while the message is on hold or in the trash'
    case 'resume':
      return suspendedText(facts)
    case 'schedule':
      return `${namedTime(facts)}${closedText(facts)}`
    case 'slot':
      return blocked(facts) ?? 'other deliveries have the slots (default_process_limit), or a rate allows none yet'
    case 'due-time':
    case 'probe':
    case 'delivery':
      return scheduledBy(facts)
  }
}

/** The rule for a message whose client, or an operator, has named the time of its next attempt. The time is shown beside it. */
function namedTime({ story: { message } }: RuleFacts): string {
  const { holdRequest = '' } = message
  const quota = quotaReason(message)
  if (quota !== null) return `scheduled: ${quota} until then`
  const asked = (origin: string): string => (namesInstant(holdRequest) ? 'a time of day' : `an interval after the ${origin}`)
  if (isOrdered(holdRequest)) return `scheduled by an operator, who named ${asked('order')} (queue reschedule)`
  return `scheduled by the client, which named ${asked('acceptance')} (HOLDFOR, HOLDUNTIL, not_before)`
}

/** Why the destination gets scheduled mail later than at its time; empty when it does not. */
function closedText({ recipient, next, record }: RuleFacts): string {
  if (next === recipient.dueAt) return ''
  return `; ${recordedState(record) === 'suspended' ? suspendedText({ record }) : DEAD}`
}

const blocked = ({ live }: Pick<RuleFacts, 'live'>): string | null => (live === undefined ? null : blockedBy(live))

/** ` ([destination."a.example"])` after the value of a parameter; empty for a global one. */
const originText = (origin: string | undefined): string => (origin === undefined ? '' : ` (${origin})`)

/** The shortest and the longest wait, with the tables that set them. */
function waitLimits({ settings, origins }: Pick<DestinationPolicy, 'settings' | 'origins'>): string {
  const minimal = `minimal_backoff_time = ${formatDuration(settings.minimal_backoff_time)}`
  const maximal = `maximal_backoff_time = ${formatDuration(settings.maximal_backoff_time)}`
  const [first, second] = [origins.get('minimal_backoff_time'), origins.get('maximal_backoff_time')]
  if (first !== undefined && first === second) return `${minimal}, ${maximal} (both ${first})`
  return `${minimal}${originText(first)}, ${maximal}${originText(second)}`
}

/** The rule for a recipient whose next attempt is scheduled. */
function scheduledBy({ recipient, story, waits, next, policies, live }: RuleFacts): string {
  const policy = policies.forMail(recipient.destination, story.message)
  const { settings: values, origins } = policy
  const from = (name: SettingName): string => originText(origins.get(name))
  const lifetime = story.message.sender === '' ? 'bounce_queue_lifetime' : 'maximal_queue_lifetime'
  if (story.forcedExpire) return `forced to expire by an operator: ${endWords(shownSender(story.message.sender))} without another attempt`
  const limits = waitLimits(policy)
  // The due time is in the past or before the probe, so the destination determines the time.
  if (waits === 'probe' && next !== recipient.dueAt) {
    const why = blocked({ live })
    return `due, but ${DEAD}${why === null ? '' : `, and ${why}`}; ${limits}`
  }
  if (waits === 'due-time' && live !== undefined && live.awaited.length > 0) return `not before a host has room: ${blockedBy(live) ?? ''}`
  if (story.message.expires !== undefined && recipient.dueAt >= story.message.expires)
    return 'last attempt, at the time at which the client gives the message up (expires, or BY with the mode R)'
  if (recipient.dueAt >= recipient.expiresAt)
    return `last attempt, at the end of ${lifetime} = ${formatDuration(values[lifetime])}${from(lifetime)}`
  const limit = attemptLimit(values, story.message)
  if (limit !== null && recipient.steps + 1 >= limit.steps)
    return `last attempt: ${limit.rule}${limit.isOwn ? ' of the message' : from('maximal_delivery_attempts')}`
  if (recipient.steps === 0) return 'first attempt of new mail, at once'
  const backoff = `retry_backoff = ${values.retry_backoff}${from('retry_backoff')}`
  const jitter = values.retry_jitter > 0 ? `, retry_jitter = ${values.retry_jitter}${from('retry_jitter')}` : ''
  return `wait ${recipient.steps} of ${backoff}${waited(recipient, story)}; ${limits}${jitter}`
}

/** Text about the length of the current wait, from the last attempt in the history; empty without such an attempt. */
function waited(recipient: Recipient, { history }: MessageDetails): string {
  const last = history.findLast((attempt) => attempt.recipient === recipient.id)
  return last === undefined || recipient.dueAt <= last.at ? '' : `: ${span(recipient.dueAt - last.at)} after the last attempt`
}

/** The command that resumes a suspended destination, or its provider; both when both are suspended, undefined when none is. */
function resumption(record: DestinationRecord | undefined): string | undefined {
  if (record === undefined || record.suspension === null) return undefined
  const { provider, also } = record.suspension
  if (provider !== undefined) return `deferd provider resume ${provider}`
  const own = `deferd destination resume ${record.name}`
  return also === undefined ? own : `${own}, and deferd provider resume ${also.provider}`
}

interface RemedyFacts {
  readonly waits: WaitsFor
  readonly queueId: string
  readonly record: DestinationRecord | undefined
  /** True for mail that an operator has made to expire. */
  readonly forcedExpire: boolean
}

/** The command that would end the wait earlier; null when there is none. */
export function remedyFor({ waits, queueId, record, forcedExpire: isForced }: RemedyFacts): string | null {
  const toDo = (what: string): string => (isForced ? 'to have it expire now' : what)
  switch (waits) {
    case 'due-time':
      return `${toDo('to try now')}: deferd queue flush ${queueId}`
    case 'schedule': {
      const resume = resumption(record)
      return `${toDo('to send now')}: deferd queue release ${queueId}${resume === undefined ? '' : `, and ${resume}`}`
    }
    case 'probe': {
      const probed = `a probe of ${record?.name ?? 'the destination'}`
      return `waits ${isForced ? `for ${probed}` : `until ${probed} succeeds`}; ${toDo('to try now')}: deferd queue flush ${queueId}`
    }
    case 'resume':
      return resumption(record) ?? null
    case 'release':
      return `deferd queue release ${queueId}`
    case 'restore':
      return `deferd queue restore ${queueId}`
    case 'inspection':
      return `to remove it: deferd queue delete ${queueId}`
    case 'slot':
    case 'delivery':
    case 'nothing':
      return null
  }
}
