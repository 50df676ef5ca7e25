/** Changes of a program to the messages that it has submitted itself: cancellation, and other times. */
import { HTTP_PROBLEMS, Problem, type ProblemKind } from '../../http/problem-details.ts'
import type { Requester } from '../../http/requests/requester.ts'
import { isLive, queueIdOf } from '../../mail/message.ts'
import { holdRequestOf, isReturned, queueTimeOf, type NamedTime } from '../../mail/message-times.ts'
import { maskControls } from '../../mail/smtp-reply.ts'
import { parseQueueId } from '../../mail/queue-id.ts'
import type { Cancelled } from '../../queue/cancellation.ts'
import type { SelectedMessage } from '../../queue/selected-messages.ts'
import type { MessageDetails } from '../../store/queue-reader.ts'
import { UNKNOWN_MESSAGE } from '../messages.ts'
import type { QueueView } from '../queue-view.ts'

export const TOO_LATE: ProblemKind = {
  slug: 'too-late',
  status: 409,
  title: 'Too late',
  about: 'Every recipient of the message has an outcome or is in transfer, or the message is not scheduled any more. Nothing was changed.',
}

export const TOO_MANY: ProblemKind = {
  slug: 'too-many-messages',
  status: 409,
  title: 'Too many messages',
  about: 'More than 1,000 messages have the envelope id. Nothing was changed: an operator deletes them (`deferd queue delete`).',
}

/** Maximum number of messages that one request cancels. */
const MOST = 1_000

/** Names of the tokens and logins whose mail a client may change: its own token, and the login of that name; null for all mail. */
function submittersOf({ role, name }: Requester): readonly string[] | null {
  if (role === 'admin' || role === 'local') return null
  return name.startsWith(TOKEN) ? [name, name.slice(TOKEN.length)] : [name]
}

const TOKEN = 'token:'

/** A message of the client, in the queue or in the history. Throws Problem as for a message that does not exist when it is another's. */
async function ownMessage({ reader }: QueueView, queueId: string, requester: Requester): Promise<MessageDetails> {
  const found = parseQueueId(queueId) === undefined ? undefined : await reader.details(queueId)
  const submitters = submittersOf(requester)
  if (found !== undefined && (submitters === null || submitters.includes(found.message.saslUsername ?? ''))) return found
  throw new Problem(UNKNOWN_MESSAGE, `there is no message ${maskControls(queueId)} that ${requester.name} has submitted`)
}

export async function cancelOne(view: QueueView, queueId: string, requester: Requester): Promise<readonly Cancelled[]> {
  const { message } = await ownMessage(view, queueId, requester)
  return cancelled(view, [message], requester)
}

export async function cancelByEnvid(view: QueueView, envid: string, requester: Requester): Promise<readonly Cancelled[]> {
  const found = await view.reader.withEnvid(envid, submittersOf(requester), MOST + 1)
  if (found.length === 0)
    throw new Problem(UNKNOWN_MESSAGE, `no message in the queue has the envelope id ${envid} and was submitted by ${requester.name}`)
  if (found.length > MOST)
    throw new Problem(TOO_MANY, `more than ${MOST} messages have the envelope id ${envid}: let an operator delete them`)
  return cancelled(view, found, requester)
}

async function cancelled(view: QueueView, messages: readonly SelectedMessage[], { name }: Requester): Promise<readonly Cancelled[]> {
  const outcomes = await view.operations().cancel(messages, name)
  if (outcomes.some((one) => one.cancelled.length > 0)) return outcomes
  throw new Problem(TOO_LATE, 'nothing was cancelled: each recipient has an outcome, or is in transfer')
}

/** Other times of a message; null takes a time away, and a member that is absent stays. */
interface OtherTimes {
  readonly not_before?: NamedTime | null | undefined
  readonly expires?: NamedTime | null | undefined
}

export interface Rescheduled {
  readonly queueId: string
  readonly notBefore: number
  readonly expires: number | undefined
}

const invalidTime = (pointer: string, detail: string): Problem =>
  new Problem(HTTP_PROBLEMS.invalid, `invalid request: ${pointer}: ${detail}`, { errors: [{ pointer, detail }] })

/** Gives a scheduled message of the client other times. `check` throws for times that are not granted. */
export async function rescheduleOne(
  view: QueueView,
  queueId: string,
  { requester, times, check }: { readonly requester: Requester; readonly times: OtherTimes; readonly check: (sender: string) => void },
): Promise<Rescheduled> {
  const { message, recipients } = await ownMessage(view, queueId, requester)
  check(message.sender)
  const { clock } = view
  const moment = { now: clock.now(), wall: clock.wall }
  const { not_before: release, expires: end } = times
  const notBefore = release === undefined ? (message.notBefore ?? moment.now) : release === null ? moment.now : queueTimeOf(release, moment)
  const expires = end === undefined ? message.expires : end === null ? undefined : queueTimeOf(end, moment)
  if (expires !== undefined && expires <= notBefore) throw invalidTime('/expires', 'the time is not after not_before')
  const { deliverBy, byMode } = message
  if (deliverBy !== undefined && notBefore > deliverBy) throw invalidTime('/not_before', 'the time is later than that of BY')
  if (byMode !== undefined && isReturned(byMode) && (expires ?? Infinity) > (deliverBy ?? Infinity))
    throw invalidTime('/expires', 'the time is later than that of BY')
  const holdRequest = release === undefined || release === null ? undefined : holdRequestOf(release)
  const listed = { message, recipients: recipients.filter(isLive) }
  if (message.scheduled !== true || !(await view.operations().reschedule(listed, { notBefore, expires, holdRequest })))
    throw new Problem(TOO_LATE, `message ${queueIdOf(message)} is not scheduled any more`)
  return { queueId: queueIdOf(message), notBefore, expires }
}
