/** Checks of the times that a request names for a message. */
import { Problem, type ProblemKind } from '../../http/problem-details.ts'
import type { Envelope } from '../../mail/envelope.ts'
import { queueTimeOf, timeProblem } from '../../mail/message-times.ts'
import type { QueueView } from '../../queries/queue-view.ts'
import { formatDuration } from '../../system/duration.ts'

export const TIMES: ProblemKind = {
  slug: 'invalid-time',
  status: 422,
  title: 'Invalid time',
  about:
    'A time is in the past, `not_before` is later than `smtpd_future_release_limit` allows or than `expires`, or the message has the null sender. Nothing was changed; `errors` names the member.',
}

const invalidTime = (pointer: string, detail: string): Problem =>
  new Problem(TIMES, `${pointer}: ${detail}`, { errors: [{ pointer, detail }] })

/** Throws Problem for times that cannot be granted. */
export function assertTimes(
  { sender, release, expires }: Pick<Envelope, 'sender' | 'release' | 'expires'>,
  { clock, loaded }: Pick<QueueView, 'clock' | 'loaded'>,
): void {
  const moment = { now: clock.now(), wall: clock.wall }
  const { smtpd_future_release_limit: limit } = loaded().config
  if (release !== undefined) {
    if (limit === 0) throw invalidTime('/not_before', 'messages are not held for later: smtpd_future_release_limit is 0')
    if (sender === '') throw invalidTime('/not_before', 'mail from the null sender is not held')
    const problem = timeProblem(release, moment, limit)
    if (problem === 'past') throw invalidTime('/not_before', 'the time is in the past')
    if (problem === 'too-far')
      throw invalidTime('/not_before', `the time is more than ${formatDuration(limit)} in the future (smtpd_future_release_limit)`)
  }
  if (expires === undefined) return
  const end = queueTimeOf(expires, moment)
  if (end <= moment.now) throw invalidTime('/expires', 'the time is in the past')
  if (release !== undefined && end <= queueTimeOf(release, moment)) throw invalidTime('/expires', 'the time is not after not_before')
}
