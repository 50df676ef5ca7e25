/** Plans of retry policies, by the code of `deferd simulate schedule`. */
import { PolicyError } from '../backoff/policy.ts'
import { compileRetryPolicy } from '../backoff/retry-policy.ts'
import type { Config } from '../config/options.ts'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { OUTAGES, planOf, type Setup } from '../planner/plan.ts'
import { plannedAttempts } from '../planner/schedule.ts'
import { planJson, type PlanJson } from '../resources/plans/retry-plan-json.ts'
import { grouped } from '../presentation/text.ts'
import { SECOND, type Duration } from '../system/clock.ts'

interface PlanRequest {
  /** Texts of policies as of retry_backoff; that of the configuration when absent. */
  readonly policies?: readonly string[] | undefined
  /** Parameters in seconds; those of the configuration when absent. */
  readonly minimal_backoff_time?: number | undefined
  readonly maximal_backoff_time?: number | undefined
  readonly maximal_queue_lifetime?: number | undefined
  readonly maximal_delivery_attempts?: number | undefined
  readonly retry_jitter?: number | undefined
  /** Lengths of outages in seconds. */
  readonly outages?: readonly number[] | undefined
  readonly seed?: number | undefined
}

/** Attempts of a plan. More would take more than some milliseconds. */
const MOST_ATTEMPTS = 2_000

const ms = (inSeconds: number | undefined): Duration | undefined => (inSeconds === undefined ? undefined : inSeconds * SECOND)

function setupOf(text: string, request: PlanRequest, config: Config): Setup {
  const minimal = ms(request.minimal_backoff_time) ?? config.minimal_backoff_time
  const maximal = ms(request.maximal_backoff_time) ?? config.maximal_backoff_time
  const lifetime = ms(request.maximal_queue_lifetime) ?? config.maximal_queue_lifetime
  if (minimal > maximal) throw new PolicyError('minimal_backoff_time is longer than maximal_backoff_time')
  const policy = compileRetryPolicy({ retry_backoff: text, minimal, maximal })
  const jitter = request.retry_jitter ?? config.retry_jitter
  const attempts = request.maximal_delivery_attempts ?? config.maximal_delivery_attempts
  const schedule = { policy, lifetime, attempts, jitter, seed: request.seed ?? 1 }
  const tooMany = MOST_ATTEMPTS + 1
  if (plannedAttempts({ ...schedule, attempts: attempts === 0 ? tooMany : Math.min(attempts, tooMany) }).length === tooMany)
    throw new PolicyError(
      `the policy ${text} makes more than ${grouped(MOST_ATTEMPTS)} attempts in the lifetime, too many for a plan: lengthen its waits, or shorten maximal_queue_lifetime`,
    )
  return { name: text, schedule, warnings: config.delay_warning_time }
}

/** The plans of a request. Throws Problem for a policy that is not valid. */
export function retryPlans(request: PlanRequest, config: Config): { readonly plans: readonly PlanJson[] } {
  const outages = request.outages?.map((one) => one * SECOND) ?? OUTAGES
  const texts = request.policies ?? [config.retry_backoff]
  return {
    plans: texts.map((text, n) =>
      planJson(
        planOf(
          checked(() => setupOf(text, request, config), n),
          outages,
        ),
      ),
    ),
  }
}

function checked<T>(work: () => T, position: number): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    throw new Problem(HTTP_PROBLEMS.invalid, error.message, { errors: [{ pointer: `/policies/${position}`, detail: error.message }] })
  }
}
