/** Formats a cause of waiting mail as JSON, with the command-line options that select its recipients. */
import { failureClass } from '../mail/failure-class.ts'
import { hintOf } from '../mail/login-refusal.ts'
import type { WaitingCause } from '../queue/waiting-causes.ts'
import { shellWord } from '../system/shell-word.ts'
import type { WallView } from '../system/wall-view.ts'

/** The options of queue commands that select a cause; null when no options do. */
export const filterOptionsOf = ({ filter }: WaitingCause): string | null =>
  filter === null ? null : `--destination ${shellWord(filter.destination ?? '')} --reply ${shellWord(filter.reply ?? '')}`

/** A cause in JSON. The member `options` has the command-line options that select its recipients in queue commands. */
export const causeJson = (cause: WaitingCause, wall: WallView) => ({
  destination: cause.destination,
  cause: cause.cause,
  recipients: cause.recipients,
  since: wall.secondsOrNull(cause.since),
  last_time: wall.secondsOrNull(cause.last),
  stage: cause.example?.status.stage ?? null,
  last_status: cause.example?.status.status ?? null,
  class: cause.example === null ? null : failureClass(cause.example.status).class,
  hint: hintOf(cause.example?.status ?? null),
  example:
    cause.example === null
      ? null
      : {
          queue_id: cause.example.queueId,
          recipient: cause.example.address,
          reply: cause.example.status.reply ?? null,
          reason: cause.example.status.reason,
        },
  filter: cause.filter,
  filter_is_exact: cause.isExact,
  options: filterOptionsOf(cause),
})

export type CauseJson = ReturnType<typeof causeJson>
