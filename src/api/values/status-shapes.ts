/** Shapes of the state of the relay, its traffic, retry plans and configuration, for the OpenAPI document. Members are only ever added. */
import { z } from 'zod'
import { count, textOrNull, time, timeOrNull } from './answer-parts.ts'
import { statusDestination } from './destination-shapes.ts'
import { subscription } from './event-shapes.ts'

const traffic = z.object({
  accepted: z.number(),
  delivered: z.number(),
  deferred: z.number(),
  bounced: z.number(),
  expired: z.number(),
  deleted: z.number(),
})

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
          kind: z.enum(['store-unavailable', 'oauth-failed', 'corrupt-messages', 'expiring-recipients', 'notices-due', 'warnings']),
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
    oauth: z
      .array(
        z.object({
          oauth: z.string().describe('name of the table `[oauth.NAME]`'),
          user: textOrNull.describe('null where one token serves all users'),
          left: z.int().nullable().describe('seconds until the end of the token; null without one'),
          problem: textOrNull.describe('why the last request failed, and what to do'),
        }),
      )
      .describe('access tokens for next hops that are in use; empty for a token of some destinations'),
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
    oauth: z.record(z.string(), z.record(z.string(), z.string())).describe('`[oauth.NAME]` tables'),
  })
  .meta({ id: 'Configuration' })
