/** Plans of retry policies in JSON. Times are in seconds. */
import { z } from 'zod'
import type { Plan } from '../../planner/plan.ts'
import type { Duration } from '../../system/clock.ts'
import { count, type Json } from '../members.ts'

const duration = z.number().nullable()

const planShape = z.object({
  policy: z.string(),
  attempts: z.array(duration),
  tries: z.object({ by_1h: count, by_24h: count, lifetime: count }),
  limit: count.nullable().describe('limit of attempts; null for none'),
  greylisting: z.array(z.object({ delay: duration, extra_wait: duration })),
  outages: z.array(
    z.object({
      outage: duration,
      mean_extra_wait: duration,
      worst_extra_wait: duration,
      share_lost: z.number(),
      attempt_rate: z.number().describe('attempts of one message per second at the end of the outage'),
    }),
  ),
  warning: duration,
  bounce: duration,
})

export type PlanJson = Json<typeof planShape>

export const plansShape = z.object({ plans: z.array(planShape) }).meta({ id: 'Plans' })

export const inSeconds = (span: Duration | null): number | null => (span === null ? null : Math.round(span * 1000) / 1e6)

/** The members of `deferd simulate schedule --json`. */
export const attemptsJson = ({ name, attempts }: Plan): Pick<PlanJson, 'policy' | 'attempts'> => ({
  policy: name,
  attempts: attempts.map(inSeconds),
})

/** The members of `deferd simulate schedule --json --plan`. */
export const planJson = (plan: Plan): PlanJson => ({
  ...attemptsJson(plan),
  tries: { by_1h: plan.tries.by1h, by_24h: plan.tries.by24h, lifetime: plan.tries.lifetime },
  limit: plan.limit,
  greylisting: plan.greylisting.map(({ delay, extra }) => ({ delay: inSeconds(delay), extra_wait: inSeconds(extra) })),
  outages: plan.outages.map(({ outage, mean, worst, lost, attemptRate }) => ({
    outage: inSeconds(outage),
    mean_extra_wait: inSeconds(mean),
    worst_extra_wait: inSeconds(worst),
    share_lost: lost,
    attempt_rate: attemptRate,
  })),
  warning: inSeconds(plan.warning),
  bounce: inSeconds(plan.bounce),
})
