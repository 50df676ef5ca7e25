/**
 * `deferd simulate schedule`: when a message that nobody takes is tried, what outages cost, when the sender hears of it; side by side for
 * several policies, for what is configured, and for what a main.cf or Exim's rules say. Also searches settings for a goal.
 */
import { basename } from 'node:path'
import type { Command } from 'commander'
import { compileAlone, compileRetryPolicy } from '../../backoff/index.ts'
import { settingsFor } from '../../config/destination-settings.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { Duration } from '../../mail/clock.ts'
import { readEximRetry, readMainCf } from '../../simulator/foreign-settings.ts'
import { DEFAULT_GOAL, type Goal, goalIsMet, searchGoal } from '../../simulator/goal.ts'
import { renderPage } from '../../simulator/page.ts'
import { type Plan, planOf, type Setup } from '../../simulator/plan.ts'
import { schedulePage } from '../../simulator/schedule-page.ts'
import { configOf, countArgument, durationArgument, subcommand } from '../command.ts'
import { planRows, planTable } from '../plan-table.ts'
import { CommandError, EX, type Shell } from '../shell.ts'
import { checked, commandLine, percentArgument, positiveArgument, readTextFile, several, writeTextFile } from '../simulation-input.ts'
import { jsonLine, span } from '../text.ts'

interface Options {
  readonly policy?: readonly string[]
  readonly mainCf?: readonly string[]
  readonly exim?: readonly string[]
  readonly queue?: true
  readonly grid?: Duration
  readonly seed: number
  readonly within?: Duration
  readonly tries?: number
  readonly share: number
  readonly outage: Duration
  readonly plan?: true
  readonly html?: string
  readonly json?: true
}

/** What is configured, for the relay and for each destination that has settings of its own. */
function configuredSetups({ config }: LoadedConfig, options: Options): readonly Setup[] {
  const places = [null, ...config.destination.keys()]
  return places.map((place) => {
    const { values } = settingsFor(config, place ?? '', place ?? '')
    const name = place === null ? values.retry_backoff : `${values.retry_backoff} at ${place}`
    const policy = compileRetryPolicy({
      retry_backoff: values.retry_backoff,
      minimal: values.minimal_backoff_time,
      maximal: values.maximal_backoff_time,
    })
    return {
      name,
      schedule: { policy, lifetime: values.maximal_queue_lifetime, jitter: values.retry_jitter, seed: options.seed },
      warnings: config.delay_warning_time,
    }
  })
}

/** A policy alone has its own defaults; as soon as backoff times are set it is planned as a queue keeps it. */
function policySetup(text: string, { config, given }: LoadedConfig, { queue, grid, seed }: Options): Setup {
  const inQueue = queue === true || given.has('minimal_backoff_time') || given.has('maximal_backoff_time')
  const backoff = { retry_backoff: text, minimal: config.minimal_backoff_time, maximal: config.maximal_backoff_time }
  const policy = inQueue ? compileRetryPolicy(backoff) : compileAlone(text)
  const onGrid = policy.policy.kind === 'formula' && policy.policy.name === 'age' && grid !== undefined
  return {
    name: text,
    schedule: { policy, lifetime: config.maximal_queue_lifetime, jitter: config.retry_jitter, seed, ...(onGrid ? { grid } : {}) },
    warnings: config.delay_warning_time,
  }
}

function setupsOf(loaded: LoadedConfig, options: Options): readonly Setup[] {
  const { policy = [], mainCf = [], exim = [] } = options
  if (options.grid !== undefined && !policy.some((text) => /^\s*age\b/i.test(text)))
    throw new CommandError(EX.usage, '--grid is for the policy age: the queue itself has no grid')
  const setups = [
    ...policy.map((text) => checked(() => policySetup(text, loaded, options))),
    ...mainCf.map((path) => checked(() => readMainCf(readTextFile(path), basename(path)), EX.data)),
    ...exim.flatMap((path) => checked(() => readEximRetry(readTextFile(path), basename(path)), EX.data)),
  ]
  return setups.length > 0 ? setups : checked(() => configuredSetups(loaded, options), EX.config)
}

const inSeconds = (duration: Duration | null): number | null => (duration === null ? null : Math.round(duration * 1000) / 1e6)

/** The contract, and with `full` all the rest that is known. */
export function planJson(plan: Plan, full: boolean): object {
  const contract = { policy: plan.name, attempts: plan.attempts.map(inSeconds) }
  if (!full) return contract
  return {
    ...contract,
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
  }
}

async function printGoal(shell: Shell, { config }: LoadedConfig, options: Options, within: Duration): Promise<void> {
  const { share, outage, tries = Infinity } = options
  const goal: Goal = { share, within, tries, outage, lifetime: config.maximal_queue_lifetime }
  const found = searchGoal(goal)
  if (options.json === true) {
    const settings = found && { minimal_backoff_time: inSeconds(found.minimal), maximal_backoff_time: inSeconds(found.maximal) }
    return shell.stdout.write(
      jsonLine({ met: goalIsMet(goal, found), ...settings, tries: found?.tries ?? null, share: found?.share ?? null }),
    )
  }
  const wish = `${100 * share} % within ${span(within)} of the end of an outage of ${span(outage)}`
  if (found === null) {
    const reason = outage > goal.lifetime ? `mail is returned after ${span(goal.lifetime)}` : 'not even a try each minute does'
    return shell.stdout.write(`No settings deliver ${wish}: ${reason}.\n`)
  }
  const settings = `minimal_backoff_time = "${found.minimal / 1000}s"\nmaximal_backoff_time = "${found.maximal / 1000}s"\n`
  const verdict = goalIsMet(goal, found) ? 'These settings' : `Not with ${tries} tries. These settings`
  return shell.stdout.write(
    `${verdict} deliver ${wish}; mail that nobody takes is tried ${found.tries} times in ${span(goal.lifetime)}:\n\n${settings}`,
  )
}

async function print(shell: Shell, command: Command, options: Options): Promise<void> {
  const loaded = await configOf(shell, command)
  if (options.within !== undefined) return printGoal(shell, loaded, options, options.within)
  const plans = checked(() => setupsOf(loaded, options).map((setup) => planOf(setup)))
  if (options.html !== undefined) writeTextFile(options.html, renderPage(schedulePage(plans, planRows(plans), commandLine(command))))
  if (options.json === true) await shell.stdout.write(plans.map((plan) => jsonLine(planJson(plan, options.plan === true))).join(''))
  else await shell.stdout.write(planTable(plans, shell.stdout.columns))
}

export function addSimulateSchedule(parent: Command, shell: Shell): void {
  subcommand(parent, 'schedule', 'when mail is tried, and what outages cost')
    .option('--policy <policy>', 'a policy such as doubling or "thain(T=5m,F=2,M=4h)"; several are compared', several)
    .option('--main-cf <file>', "Postfix's settings, as in main.cf or from postconf -n", several)
    .option('--exim <file>', "Exim's retry rules, alone or in an exim.conf", several)
    .option('--queue', 'clamp policies between minimal_backoff_time and maximal_backoff_time, as retry_backoff does')
    .option('--grid <time>', 'try at multiples of this only, as Postfix does (policy age)', durationArgument)
    .option('--seed <number>', 'of the chance in policies', countArgument, 1)
    .option('--within <time>', 'search the settings that deliver so soon after recovery with the fewest tries', durationArgument)
    .option('--tries <number>', 'the most tries the search may spend on mail that nobody takes', positiveArgument)
    .option('--share <percent>', 'the share of mail the search is about', percentArgument, DEFAULT_GOAL.share)
    .option('--outage <time>', 'the outage the search is about', durationArgument, DEFAULT_GOAL.outage)
    .option('--plan', 'with --json: outages, greylisting and notices, too')
    .option('--html <file>', 'write a page with plots')
    .option('--json', 'one JSON object per policy')
    .action((options: Options, command: Command) => print(shell, command, options))
}
