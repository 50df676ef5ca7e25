/**
 * `deferd simulate schedule`: prints the attempt times of an undeliverable message, the cost of outages, and the times of
 * notices. It compares several policies side by side: the configured settings, and settings from main.cf or Exim rules. It can
 * also search for settings that meet a goal.
 */
import { basename } from 'node:path'
import { type Command, Option } from 'commander'
import { compileAlone, compileRetryPolicy } from '../../../backoff/retry-policy.ts'
import { DestinationPolicies } from '../../../config/destination-policies.ts'
import type { LoadedConfig } from '../../../config/load.ts'
import type { Duration } from '../../../system/clock.ts'
import { readEximRetry, readMainCf } from '../../../simulator/import-settings.ts'
import { DEFAULT_GOAL, type Goal, goalIsMet, searchGoal } from '../../../simulator/goal-search.ts'
import { renderPage } from '../../../simulator/pages/page.ts'
import { planOf, type Setup } from '../../../planner/plan.ts'
import { schedulePage } from '../../../simulator/pages/schedule-page.ts'
import { configOf, countArgument, durationArgument, subcommand } from '../../shell/config-options.ts'
import { planRows, planTable } from '../../render/plan-table.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import type { Shell } from '../../shell/shell.ts'
import { checked, commandLine, percentArgument, positiveArgument, readTextFile, several, writeTextFile } from './simulate-options.ts'
import { attemptsJson, inSeconds, planJson } from '../../../resources/plans/retry-plan-json.ts'
import { jsonLine, span } from '../../../presentation/text.ts'
import { wrapped } from '../../render/wrapping.ts'
import { displayOf } from '../../shell/display.ts'

interface Options {
  readonly policy?: readonly string[]
  readonly mainCf?: readonly string[]
  readonly exim?: readonly string[]
  readonly queue?: true
  readonly grid?: Duration
  readonly seed: number
  readonly attempts?: number
  readonly within?: Duration
  readonly tries?: number
  readonly share: number
  readonly outage: Duration
  readonly backlog?: number
  readonly plan?: true
  readonly html?: string
  readonly json?: true
}

/** The configured policies: the global one, and one for each destination with settings of its own. */
function configuredSetups({ config }: LoadedConfig, options: Options): readonly Setup[] {
  const policies = new DestinationPolicies(config)
  const places = [null, ...config.destination.keys()]
  return places.map((place) => {
    const { settings: values, retry: policy } = policies.for(place ?? '')
    const name = place === null ? values.retry_backoff : `${values.retry_backoff} at ${place}`
    return {
      name,
      schedule: {
        policy,
        lifetime: values.maximal_queue_lifetime,
        attempts: values.maximal_delivery_attempts,
        jitter: values.retry_jitter,
        seed: options.seed,
      },
      warnings: config.delay_warning_time,
    }
  })
}

/**
 * A policy given on the command line. With --queue or with backoff times in the configuration, it is planned as the queue applies
 * it, otherwise with its own defaults.
 */
function policySetup(text: string, { config, given }: LoadedConfig, { queue, grid, seed }: Options): Setup {
  const inQueue = queue === true || given.has('minimal_backoff_time') || given.has('maximal_backoff_time')
  const backoff = { retry_backoff: text, minimal: config.minimal_backoff_time, maximal: config.maximal_backoff_time }
  const policy = inQueue ? compileRetryPolicy(backoff) : compileAlone(text)
  const onGrid = policy.policy.kind === 'formula' && policy.policy.name === 'age' && grid !== undefined
  return {
    name: text,
    schedule: {
      policy,
      lifetime: config.maximal_queue_lifetime,
      attempts: config.maximal_delivery_attempts,
      jitter: config.retry_jitter,
      seed,
      ...(onGrid ? { grid } : {}),
    },
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
  const planned = setups.length > 0 ? setups : checked(() => configuredSetups(loaded, options), EX.config)
  const { attempts } = options
  return attempts === undefined ? planned : planned.map((setup) => ({ ...setup, schedule: { ...setup.schedule, attempts } }))
}

async function printGoal(shell: Shell, { config }: LoadedConfig, options: Options, within: Duration): Promise<void> {
  const { share, outage, tries = Infinity } = options
  const goal: Goal = { share, within, tries, outage, lifetime: config.maximal_queue_lifetime }
  const found = searchGoal(goal)
  const paragraph = (text: string): string => `${wrapped(text, displayOf(shell).width).join('\n')}\n`
  if (options.json === true) {
    const settings = found && { minimal_backoff_time: inSeconds(found.minimal), maximal_backoff_time: inSeconds(found.maximal) }
    return shell.stdout.write(
      jsonLine({ met: goalIsMet(goal, found), ...settings, tries: found?.tries ?? null, share: found?.share ?? null }),
    )
  }
  const wish = `${Number((100 * share).toFixed(3))} % within ${span(within)} of the end of an outage of ${span(outage)}`
  if (found === null) {
    const reason = outage > goal.lifetime ? `mail is returned after ${span(goal.lifetime)}` : 'not even one attempt per minute does'
    return shell.stdout.write(paragraph(`No settings deliver ${wish}: ${reason}.`))
  }
  const settings = `minimal_backoff_time = "${found.minimal / 1000}s"\nmaximal_backoff_time = "${found.maximal / 1000}s"\n`
  const verdict = goalIsMet(goal, found) ? 'These settings' : `Not with ${tries} tries. These settings`
  const cost = `mail that is never accepted is tried ${found.tries} times in ${span(goal.lifetime)}`
  return shell.stdout.write(`${paragraph(`${verdict} deliver ${wish}; ${cost}:`)}\n${settings}`)
}

async function print(shell: Shell, command: Command, options: Options): Promise<void> {
  const loaded = await configOf(shell, command)
  if (options.within !== undefined) return printGoal(shell, loaded, options, options.within)
  const { backlog = null } = options
  const plans = checked(() => setupsOf(loaded, options).map((setup) => planOf(setup)))
  if (options.html !== undefined)
    writeTextFile(options.html, renderPage(schedulePage(plans, planRows(plans, backlog), commandLine(command))))
  if (options.json === true)
    await shell.stdout.write(plans.map((plan) => jsonLine(options.plan === true ? planJson(plan) : attemptsJson(plan))).join(''))
  else await shell.stdout.write(planTable(plans, backlog, displayOf(shell)))
}

export function addSimulateSchedule(parent: Command, shell: Shell): void {
  subcommand(parent, 'schedule', 'print attempt times and the delay after outages')
    .option('--policy <policy>', 'a policy such as doubling or "thain(T=5m,F=2,M=4h)"; repeatable', several)
    .option('--main-cf <file>', "Postfix's settings, as in main.cf or from postconf -n", several)
    .option('--exim <file>', "Exim's retry rules, alone or in an exim.conf", several)
    .option('--queue', 'clamp policies between minimal_backoff_time and maximal_backoff_time, as retry_backoff does')
    .option('--grid <time>', 'attempts at multiples of this time only, as with the queue runs of Postfix (policy age)', durationArgument)
    .option('--seed <number>', 'seed of random policies', countArgument, 1)
    .option('--attempts <number>', 'limit of attempts of all plans, in place of maximal_delivery_attempts', positiveArgument)
    .option('--within <time>', 'search settings that deliver within this time after recovery with the fewest attempts', durationArgument)
    .option('--tries <number>', 'maximum number of attempts for undeliverable mail in the search', positiveArgument)
    .addOption(
      new Option('--share <percent>', 'share of the mail of the outage that must be delivered within --within after its end, in percent')
        .argParser(percentArgument)
        .default(DEFAULT_GOAL.share, '99'),
    )
    .addOption(
      new Option('--outage <time>', 'length of the outage in the search').argParser(durationArgument).default(DEFAULT_GOAL.outage, '12h'),
    )
    .option('--backlog <messages>', 'add the failed requests per second of so many waiting messages at the receiver', positiveArgument)
    .option('--plan', 'with --json: add outages, greylisting and notices')
    .option('--html <file>', 'write a page with plots')
    .option('--json', 'one JSON object per policy')
    .action((options: Options, command: Command) => print(shell, command, options))
}
