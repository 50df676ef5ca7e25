/** Causes for which mail waits, in JSON, with the command-line options that select their recipients. */
import { z } from 'zod'
import type { SummedCause, WaitingCause } from '../queue/waiting-causes.ts'
import { shownCause } from '../mail/failure-cause.ts'
import { plural } from '../presentation/text.ts'
import { shellWord } from '../system/shell-word.ts'
import type { WallView } from '../system/wall-view.ts'
import { count, failure, failureJson, textOrNull, time, timeOrNull, type Json } from './members.ts'

const members = {
  kind: z
    .enum(['failed', 'untried', 'rare'])
    .describe('`failed` has a cause; `untried` was not tried yet, or its first attempt goes on; `rare` is the sum of many rare causes'),
  on_hold: z.boolean().describe('true for mail on hold, which is counted apart from mail that waits'),
  cause: textOrNull,
  recipients: count,
  since: timeOrNull,
  last_time: timeOrNull,
  stage: textOrNull,
  last_status: textOrNull,
  ...failure,
  example: z.object({ queue_id: z.string(), recipient: z.string(), reply: textOrNull, reason: z.string() }).nullable(),
  filter: z.object({ destination: textOrNull, queue: textOrNull, reply: textOrNull }).nullable(),
  filter_is_exact: z.boolean().describe('false when the filter also selects other mail'),
  options: textOrNull.describe('options of queue commands that select these recipients'),
}

const causeShape = z.object({ destination: z.string(), ...members })

const summedCauseShape = z.object({
  destinations: count.describe('number of destinations with this cause'),
  largest_destinations: z.array(z.string()).describe('up to five of them, those with the most of these recipients first'),
  ...members,
})

export type CauseJson = Json<typeof causeShape>
export type SummedCauseJson = Json<typeof summedCauseShape>

const LARGEST = 5

/** The cause for people. */
export function causeTitle({ kind, cause }: Pick<CauseJson, 'kind' | 'cause'>): string {
  switch (kind) {
    case 'failed':
      return shownCause(cause ?? '')
    case 'untried':
      return 'not tried yet, or in the first attempt'
    case 'rare':
      return 'one of many rare causes'
  }
}

/** The only destination by its name, or their number. */
export const destinationsText = ({ destinations, largest_destinations: [first] }: SummedCauseJson): string =>
  destinations === 1 && first !== undefined ? first : plural(destinations, 'destination')

/** The options of queue commands that select a cause; null when no options do. */
function optionsOf({ filter }: Pick<WaitingCause, 'filter'>): string | null {
  if (filter === null) return null
  const { destination, queue, reply } = filter
  const options = { destination, queue, reply }
  return Object.entries(options)
    .flatMap(([name, value]) => (value === null ? [] : [`--${name} ${shellWord(value)}`]))
    .join(' ')
}

const membersJson = (
  { kind, isHeld, cause, recipients, since, last, example, filter, isExact }: Omit<WaitingCause, 'destination'>,
  wall: WallView,
) => ({
  kind,
  on_hold: isHeld,
  cause,
  recipients,
  since: wall.secondsOrNull(since),
  last_time: wall.secondsOrNull(last),
  stage: example?.status.stage ?? null,
  last_status: example?.status.status ?? null,
  ...failureJson(example?.status ?? null),
  example:
    example === null
      ? null
      : { queue_id: example.queueId, recipient: example.address, reply: example.status.reply ?? null, reason: example.status.reason },
  filter,
  filter_is_exact: isExact,
  options: optionsOf({ filter }),
})

export const causeJson = (cause: WaitingCause, wall: WallView): CauseJson => ({
  destination: cause.destination,
  ...membersJson(cause, wall),
})

export const summedCauseJson = (cause: SummedCause, wall: WallView): SummedCauseJson => ({
  destinations: cause.destinations.length,
  largest_destinations: cause.destinations.slice(0, LARGEST),
  ...membersJson(cause, wall),
})

export const causesShape = z.object({ causes: z.array(causeShape), as_of: time }).meta({ id: 'Causes' })
export const summedCausesShape = z.object({ causes: z.array(summedCauseShape), as_of: time }).meta({ id: 'SummedCauses' })

export type CausesJson = Json<typeof causesShape>
export type SummedCausesJson = Json<typeof summedCausesShape>
