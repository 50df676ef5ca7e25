/** Formats the plan of a retry schedule as JSON. Times are in seconds. */
import type { Plan } from '../planner/plan.ts'
import type { Duration } from '../system/clock.ts'

export const inSeconds = (duration: Duration | null): number | null => (duration === null ? null : Math.round(duration * 1000) / 1e6)

/** The members of `deferd simulate schedule --json`. */
export const attemptsJson = ({ name, attempts }: Plan) => ({ policy: name, attempts: attempts.map(inSeconds) })

/** The members of `deferd simulate schedule --json --plan`. */
export const planJson = (plan: Plan) => ({
  ...attemptsJson(plan),
  tries: { by_1h: plan.tries.by1h, by_24h: plan.tries.by24h, lifetime: plan.tries.lifetime },
  greylisting: plan.greylisting.map(({ delay, extra }) => ({ delay: inSeconds(delay), extra_wait: inSeconds(extra) })),
  outages: plan.outages.map(({ outage, mean, worst, lost }) => ({
    outage: inSeconds(outage),
    mean_extra_wait: inSeconds(mean),
    worst_extra_wait: inSeconds(worst),
    share_lost: lost,
  })),
  warning: inSeconds(plan.warning),
  bounce: inSeconds(plan.bounce),
})

export type PlanJson = ReturnType<typeof planJson>
