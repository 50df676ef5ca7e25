/** Shapes of destinations, and of the causes for which mail waits, for the OpenAPI document. Members are only ever added. */
import { z } from 'zod'
import { count, failureClass, hint, next, textOrNull, time, timeOrNull } from './answer-parts.ts'

export const destination = z
  .object({
    destination: z.string(),
    node: textOrNull,
    state: z.enum(['open', 'throttled', 'dead', 'suspended']),
    window: z.number().nullable(),
    message_rate: z.number().nullable(),
    provider: textOrNull,
    provider_rules: z.array(z.object({ rule: z.string(), action: z.string(), until: time, reply: z.string() })),
    in_flight: count,
    waiting: count,
    next_due_time: timeOrNull,
    dead_until: timeOrNull,
    probe_interval: z.number().nullable(),
    suspended_by: textOrNull,
    suspended_until: timeOrNull,
    suspend_reason: textOrNull,
    last_reply: textOrNull,
    hint,
  })
  .meta({ id: 'Destination' })

export const destinationPage = z.object({ destinations: z.array(destination), next, as_of: time }).meta({ id: 'DestinationPage' })

const recentCause = z.object({ cause: z.string(), attempts: count })

export const destinationDetails = destination
  .extend({
    last_outcomes: z.array(z.string()).describe('outcomes of the last attempts, oldest first'),
    last_causes: z.array(recentCause),
    last_windows: z.array(z.number()).describe('the window after each of its last changes, oldest first'),
    settings: z.object({ table: textOrNull, values: z.record(z.string(), z.string()) }),
    as_of: time,
  })
  .meta({ id: 'DestinationDetails' })

export const statusDestination = z.object({
  destination: z.string(),
  state: z.string(),
  waiting: count,
  window: z.number().nullable(),
  in_flight: z.number().nullable(),
  next_due_time: timeOrNull,
  dead_until: timeOrNull,
  suspended_by: textOrNull,
  suspended_until: timeOrNull,
  suspend_reason: textOrNull,
  last_reply: textOrNull,
  hint,
  last_outcomes: z.array(z.string()).nullable(),
  last_causes: z.array(recentCause).nullable(),
})

const cause = z.object({
  destination: z.string(),
  cause: textOrNull,
  recipients: count,
  since: timeOrNull,
  last_time: timeOrNull,
  stage: textOrNull,
  last_status: textOrNull,
  class: failureClass.nullable(),
  hint,
  example: z.object({ queue_id: z.string(), recipient: z.string(), reply: textOrNull, reason: z.string() }).nullable(),
  filter: z.object({ destination: textOrNull, reply: textOrNull }).nullable(),
  filter_is_exact: z.boolean(),
  options: textOrNull,
})

export const causes = z.object({ causes: z.array(cause), as_of: time }).meta({ id: 'Causes' })
