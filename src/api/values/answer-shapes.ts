/** Shapes of answers, for the OpenAPI document. Members are only ever added. Times are seconds since 1970 with a fraction. */
import { FAILURE_CLASSES } from '../../mail/failure-class.ts'
import { z } from 'zod'
import { EVENT_TYPES } from '../../events/event-types.ts'

const time = z.number().describe('seconds since 1970')
const timeOrNull = time.nullable()
const textOrNull = z.string().nullable()
const count = z.int().min(0)

const traffic = z.object({
  accepted: z.number(),
  delivered: z.number(),
  deferred: z.number(),
  bounced: z.number(),
  expired: z.number(),
  deleted: z.number(),
})

const recipient = z.object({
  orig_address: z.string().optional(),
  address: z.string(),
  bounce_reason: z.string().optional(),
  delay_reason: z.string().optional(),
  destination: z.string().nullable(),
  state: z.enum(['waiting', 'leased', 'parked', 'delivered', 'bounced', 'expired', 'removed']),
  attempts: count,
  next_attempt_time: timeOrNull,
  last_status: textOrNull,
  leased_by: z.string().optional().describe('name of the node that delivers'),
})

const message = z.object({
  queue_name: z.enum(['maildrop', 'incoming', 'active', 'deferred', 'hold', 'corrupt', 'trash', 'gone']),
  queue_id: z.string(),
  arrival_time: z.int(),
  message_size: count,
  forced_expire: z.boolean(),
  sender: z.string(),
  recipients: z.array(recipient),
  expire_time: timeOrNull,
  attempts: count,
  next_attempt_time: timeOrNull,
})

/** A line of the whole listing. */
export const messageLine = message.extend({ delay_reason: z.string().optional() }).meta({ id: 'MessageLine' })

const next = z.string().nullable().describe('cursor of the next page; null after the last one')

export const messagePage = z
  .object({
    messages: z.array(message.extend({ recipient_count: count.describe('all recipients; the list has at most 20') })),
    next,
    as_of: time,
  })
  .meta({ id: 'MessagePage' })

const failureClass = z.enum(FAILURE_CLASSES).describe('class of the failure; see docs/deliverability.md')

export const messageCount = z
  .object({ count, at_least: z.boolean().describe('true when the count ended early') })
  .meta({ id: 'MessageCount' })

const attempt = z.object({
  time,
  recipient: z.string(),
  host: textOrNull,
  stage: z.string(),
  reply: textOrNull,
  status: z.string(),
  class: failureClass.nullable(),
  outcome: z.string(),
  delays: z.array(z.number()),
  reason: z.string(),
  tls: z
    .object({
      level: z.string(),
      policy: z.enum(['config', 'dane', 'sts', 'none']).describe('source of the level'),
      state: z.enum(['undecided', 'clear', 'encrypted', 'trusted', 'verified', 'not-offered', 'refused']),
      protocol: textOrNull,
      cipher: textOrNull,
      reason: textOrNull,
    })
    .nullable()
    .describe('TLS of the session with the host; null when no host was chosen'),
})

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

const cause = z.object({
  destination: z.string(),
  cause: textOrNull,
  recipients: count,
  since: timeOrNull,
  last_time: timeOrNull,
  stage: textOrNull,
  last_status: textOrNull,
  class: failureClass.nullable(),
  example: z.object({ queue_id: z.string(), recipient: z.string(), reply: textOrNull, reason: z.string() }).nullable(),
  filter: z.object({ destination: textOrNull, reply: textOrNull }).nullable(),
  filter_is_exact: z.boolean(),
  options: textOrNull,
})

export const causes = z.object({ causes: z.array(cause), as_of: time }).meta({ id: 'Causes' })

/** A line of the whole history. */
export const departedMessage = z
  .object({
    queue_id: z.string(),
    arrival_time: z.int(),
    left_time: time,
    message_size: count,
    sender: z.string(),
    message_id: textOrNull,
    recipients: z.array(
      z.object({
        address: z.string(),
        destination: z.string(),
        outcome: z.string(),
        time,
        attempts: count,
        last_status: textOrNull,
        class: failureClass.nullable(),
        reply: textOrNull,
        reason: textOrNull,
      }),
    ),
  })
  .meta({ id: 'DepartedMessage' })

export const historyPage = z.object({ messages: z.array(departedMessage), next, as_of: time }).meta({ id: 'HistoryPage' })

const statusDestination = z.object({
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
  last_outcomes: z.array(z.string()).nullable(),
  last_causes: z.array(recentCause).nullable(),
})

/** A subscription to events. */
export const subscription = z
  .object({
    name: z.string(),
    owner: z.enum(['configuration', 'command']),
    to: z.string().describe('target; empty for events that are only read'),
    types: z.array(z.string()).describe('patterns of types; empty for all'),
    destinations: z.array(z.string()),
    senders: z.array(z.string()),
    format: z.enum(['deferd', 'cloudevents']),
    batch: count,
    state: z.enum(['active', 'disabled']),
    why: textOrNull.describe('why it is disabled'),
    behind: count.describe('kept events after its position, of any type'),
    oldest_time: timeOrNull.describe('time of the first of them'),
    parked: count.describe('events that the target refused'),
    lost: count.describe('deleted events of which it was not told yet'),
    tries: count.describe('failed tries of the next event'),
    next_try_time: timeOrNull,
    last_answer: textOrNull,
    last_answer_ok: z.boolean().nullable(),
    last_answer_time: timeOrNull,
  })
  .meta({ id: 'Subscription' })

export const now = z
  .object({
    name: z.string().describe('myhostname'),
    time,
    running: z.boolean(),
    version: textOrNull,
    rates: z.object({ last_10s: traffic, last_5min: traffic }).nullable().describe('recipients per second'),
    last_hour: traffic,
    queues: z.array(z.object({ queue_name: z.string(), messages: count, recipients: count, oldest_arrival_time: z.int() })),
    trash: z.object({ messages: count, recipients: count }),
    oldest_arrival_time: z.int().nullable(),
    oldest: z.object({ queue_id: z.string(), arrival_time: z.int() }).nullable(),
    ages: z
      .object({
        as_of: time,
        limits: z.array(z.int().nullable()).describe('upper limits of the columns in minutes; the last one has none'),
        counts: z.array(count),
      })
      .nullable()
      .describe(
        'messages by age, as counted some time ago; null before the first count, for more than 100,000 messages, and for a token with limited destinations',
      ),
    attention: z
      .array(
        z.object({
          kind: z.enum(['store-unavailable', 'corrupt-messages', 'expiring-recipients', 'notices-due', 'warnings']),
          count: count.nullable(),
          at_least: z.boolean().describe('true when the count stopped at its limit'),
          within: z.number().nullable().describe('seconds'),
          text: textOrNull,
          since: timeOrNull,
        }),
      )
      .describe('conditions that need an operator, beside closed_destinations; empty for a token of some destinations'),
    closed_destinations: z.array(statusDestination),
    largest_destinations: z.array(statusDestination),
    subscriptions: z.array(subscription).describe('empty for a token of some destinations'),
    balance: z.record(z.string(), z.number()),
  })
  .meta({ id: 'Now' })

export const series = z
  .object({
    span: z.string(),
    interval: z.number().describe('length of an interval in seconds'),
    begin: time,
    counts: z.array(traffic).describe('recipients per interval, oldest first'),
  })
  .meta({ id: 'Series' })

const planned = z.object({
  policy: z.string(),
  attempts: z.array(z.number().nullable()),
  tries: z.object({ by_1h: count, by_24h: count, lifetime: count }),
  greylisting: z.array(z.object({ delay: z.number().nullable(), extra_wait: z.number().nullable() })),
  outages: z.array(
    z.object({
      outage: z.number().nullable(),
      mean_extra_wait: z.number().nullable(),
      worst_extra_wait: z.number().nullable(),
      share_lost: z.number(),
    }),
  ),
  warning: z.number().nullable(),
  bounce: z.number().nullable(),
})

export const plans = z.object({ plans: z.array(planned) }).meta({ id: 'Plans' })

export const configuration = z
  .object({
    file: textOrNull,
    parameters: z.array(z.object({ name: z.string(), value: z.string(), default: z.string(), given: z.boolean() })),
    destinations: z.record(z.string(), z.record(z.string(), z.string())),
    dkim: z.record(z.string(), z.record(z.string(), z.string())),
    events: z.record(z.string(), z.record(z.string(), z.string())).describe('`[events.NAME]` tables, without secrets'),
  })
  .meta({ id: 'Configuration' })

const operationState = {
  id: z.int(),
  state: z.enum(['running', 'done', 'failed', 'cancelled']),
  matched: count.describe('messages selected so far'),
  unknown: count.describe('ids found neither in the queue nor in the trash'),
  expected: count.nullable().describe('messages of the plan'),
  reason: textOrNull,
  last_time: time,
  undo_until: timeOrNull.describe('null for an operation that cannot be undone'),
  undoes: z.int().nullable(),
  undone_by: z.int().nullable(),
  error: textOrNull,
  node: textOrNull,
}

export const operation = z
  .object({ ...operationState, operation: z.string(), arguments: z.string(), changed: count, who: z.string(), time })
  .meta({ id: 'Operation' })

const future = z.object({
  recipient: z.string(),
  attempts: z.array(time).describe('coming attempts while the recipient stays deferred; at most 500'),
  planned: count.describe('all coming attempts'),
  warnings: z.array(time).describe('delay warnings to the sender'),
  expire_time: time.describe('time at which the sender gets the message back'),
})

export const messageStory = message
  .extend({
    history: z.array(attempt),
    rule: textOrNull,
    waits_for: z.enum(['due-time', 'delivery', 'probe', 'resume', 'release', 'inspection', 'restore', 'nothing']),
    message_id: textOrNull.describe('Message-ID of the header'),
    client: textOrNull.describe('name and address of the client that sent the message'),
    sasl_username: textOrNull.describe('user of the login of that client'),
    operations: z.array(operation).describe('the last operations on the message, the newest first'),
    future: z.array(future).describe('recipients that wait for attempts; with `retry_jitter`, one of the possible schedules'),
  })
  .meta({ id: 'Message' })

const auditEntry = z.object({ time, who: z.string(), action: z.string(), arguments: z.string(), changed: count, ...operationState })

export const auditPage = z.object({ records: z.array(auditEntry), next, as_of: time }).meta({ id: 'AuditPage' })

/** Answer to a dry run. */
export const operationPlan = z
  .object({
    operation: z.string(),
    dry_run: z.literal(true),
    plan: z.object({
      token: z.string(),
      matched: count,
      unknown: count.describe('ids found neither in the queue nor in the trash'),
      bytes: count,
      oldest: z.int().nullable().describe('arrival of the oldest message'),
      in_delivery: count.describe('messages of which an outcome may count first'),
      destinations: count,
      examples: z.array(message.extend({ recipient_count: count })),
      told_senders: z.boolean(),
      undo: timeOrNull.describe('time until which the operation could be undone'),
    }),
  })
  .meta({ id: 'OperationPlan' })

/** Answer to a message that is on disk. */
export const accepted = z
  .object({
    queue_id: z.string(),
    message_id: textOrNull,
    recipients: z.array(z.object({ address: z.string(), destination: z.string() })),
    rejected: z.array(z.object({ address: z.string(), reason: z.string() })).describe('recipients that are no addresses, with `partial`'),
  })
  .meta({ id: 'Accepted' })

export const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).optional(),
  })
  .meta({ id: 'Problem' })

/** An event for programs. Its data have the members that docs/events.md lists for the type. */
export const event = z
  .object({
    id: z.string().describe('equal each time the event is sent, and the position after it'),
    type: z.enum(EVENT_TYPES),
    timestamp: z.string().describe('ISO 8601, UTC'),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'Event' })

export const eventPage = z
  .object({
    events: z.array(event),
    next: z.string().describe('position after the page, also when nothing follows yet'),
    kept_types: z.array(z.enum(EVENT_TYPES)).describe('types that somebody has subscribed to; others are not kept'),
    as_of: time,
  })
  .meta({ id: 'EventPage' })

export const subscriptionList = z
  .object({
    subscriptions: z.array(subscription),
    kept_types: z.array(z.enum(EVENT_TYPES)).describe('types that somebody has subscribed to; others are not kept'),
    as_of: time,
  })
  .meta({ id: 'Subscriptions' })

export const parkedPage = z
  .object({
    events: z.array(event.extend({ number: count, time, tries: count, parked_time: time, next_try_time: timeOrNull, answer: z.string() })),
    next,
  })
  .meta({ id: 'ParkedEvents' })

export const replay = z
  .object({
    name: z.string(),
    replay: z.enum(['waiting', 'parked', 'since']),
    events: count.describe('events that are sent, or would be, before the filter of the subscription'),
    command: z.string().describe('the same as arguments of `deferd`'),
    dry_run: z.boolean(),
    subscription: subscription.describe('before the replay'),
    as_of: time,
  })
  .meta({ id: 'Replay' })
