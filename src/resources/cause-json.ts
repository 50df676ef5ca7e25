/** Causes for which mail waits, in JSON, with the command-line options that select their recipients. */
import { z } from 'zod'
import type { WaitingCause } from '../queue/waiting-causes.ts'
import { shellWord } from '../system/shell-word.ts'
import type { WallView } from '../system/wall-view.ts'
import { count, failure, failureJson, textOrNull, time, timeOrNull, type Json } from './members.ts'

const causeShape = z.object({
  destination: z.string(),
  cause: textOrNull,
  recipients: count,
  since: timeOrNull,
  last_time: timeOrNull,
  stage: textOrNull,
  last_status: textOrNull,
  ...failure,
  example: z.object({ queue_id: z.string(), recipient: z.string(), reply: textOrNull, reason: z.string() }).nullable(),
  filter: z.object({ destination: textOrNull, reply: textOrNull }).nullable(),
  filter_is_exact: z.boolean(),
  options: textOrNull,
})

export type CauseJson = Json<typeof causeShape>

/** The options of queue commands that select a cause; null when no options do. */
const filterOptionsOf = ({ filter }: WaitingCause): string | null =>
  filter === null ? null : `--destination ${shellWord(filter.destination ?? '')} --reply ${shellWord(filter.reply ?? '')}`

export const causeJson = (cause: WaitingCause, wall: WallView): CauseJson => {
  const { destination, recipients, since, last, example, filter, isExact } = cause
  return {
    destination,
    cause: cause.cause,
    recipients,
    since: wall.secondsOrNull(since),
    last_time: wall.secondsOrNull(last),
    stage: example?.status.stage ?? null,
    last_status: example?.status.status ?? null,
    ...failureJson(example?.status ?? null),
    example:
      example === null
        ? null
        : {
            queue_id: example.queueId,
            recipient: example.address,
            reply: example.status.reply ?? null,
            reason: example.status.reason,
          },
    filter,
    filter_is_exact: isExact,
    options: filterOptionsOf(cause),
  }
}

export const causesShape = z.object({ causes: z.array(causeShape), as_of: time }).meta({ id: 'Causes' })

export type CausesJson = Json<typeof causesShape>
