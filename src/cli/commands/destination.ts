/** `deferd destination`: lists, shows, suspends and resumes destinations. */
import { Option, type Command } from 'commander'
import type { Config } from '../../config/options.ts'
import { providerText, rateText, stateText } from '../../presentation/destination-state.ts'
import type { DestinationJson } from '../../resources/destination-json.ts'
import { DESTINATION_SORTS, isIdle, sortedDestinations, type DestinationSort } from '../../queries/destination-list.ts'
import { destinationTable, destinationValues } from '../render/destination-rows.ts'
import type { Display } from '../render/style.ts'
import { hanging } from '../render/wrapping.ts'
import { displayOf } from '../shell/display.ts'
import { configOf, durationArgument, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import { shownDestinations } from '../queue-client/shown-destinations.ts'
import { withSource, type Shell } from '../shell/shell.ts'
import type { Clock, Duration } from '../../system/clock.ts'
import { grouped, instantOf, maskControls, jsonLine, localTime, plural, relative } from '../../presentation/text.ts'

const isKnown = (shell: Shell, config: Config, name: string): Promise<boolean> =>
  withSource(shell, config, async (source) => (await (await shownDestinations(shell, config, source)).named(name)) !== undefined)

interface ListOptions {
  readonly all?: true
  readonly sort?: DestinationSort
  readonly tsv?: true
  readonly json?: true
}

async function list(shell: Shell, { all, sort, tsv, json }: ListOptions, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const found = (await shownDestinations(shell, config, source)).all()
    // JSON has all destinations by name, one at a time, unless an order is given.
    if (json === true && sort === undefined) {
      for await (const one of found) await shell.stdout.write(jsonLine(one))
      return
    }
    const known: DestinationJson[] = []
    for await (const one of found) known.push(one)
    const shown = sortedDestinations(all === true || json === true ? known : known.filter((one) => !isIdle(one)), sort ?? 'waiting')
    if (json === true) return await shell.stdout.write(shown.map(jsonLine).join(''))
    const now = source.clock.wall.now()
    if (tsv === true) return await shell.stdout.write(shown.map((one) => `${destinationValues(one, now)}\n`).join(''))
    await shell.stdout.write(destinationTable(shown, known.length - shown.length, { now, display: displayOf(shell) }))
  })
}

async function show(shell: Shell, asked: string, options: { readonly json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const one = await (await shownDestinations(shell, config, source)).named(asked.toLowerCase())
    if (one === undefined)
      throw new CommandError(
        EX.data,
        `no queued mail and no recorded state for ${maskControls(asked)}; deferd destination list shows all names`,
      )
    await shell.stdout.write(options.json === true ? jsonLine(one) : screen(one, source.clock, displayOf(shell)))
  })
}

function screen(one: DestinationJson, clock: Clock, { width }: Display): string {
  const now = clock.wall.now()
  const { node, waiting, leased, next_due_time: due, window, message_rate: rate, in_flight: inFlight } = one
  const facts: readonly (readonly [string, string | null])[] = [
    ['state', stateText(one, now)],
    ['node', node],
    ['waiting', `${plural(waiting, 'recipient')}, ${grouped(leased)} claimed`],
    ['next due', due === null ? null : `${localTime(instantOf(due), clock)} (${relative(instantOf(due), now)})`],
    [
      'window',
      window === null
        ? null
        : `${window} at once${rateText(rate)}, ${inFlight} in flight, ${grouped(one.slot_waiting ?? 0)} waiting for a slot`,
    ],
    ['provider', providerText(one)],
    ['blocked', one.blocked_by],
    ...one.provider_rules.map(
      ({ rule, action, until, reply }) => [`rule ${rule}`, `${action}, ends ${relative(instantOf(until), now)}: ${reply}`] as const,
    ),
    ['last reply', one.site_reason],
    ['to do', one.hint],
  ]
  const lines = facts.flatMap(([name, value]) =>
    value === null ? [] : hanging(`  ${name.padEnd(11)} `, maskControls(value), { width, indent: 14 }),
  )
  return [maskControls(one.destination), ...lines].map((text) => `${text}\n`).join('')
}

/** Acts on a destination as the owner of the queue, or through the daemon. Returns whether the destination is known. */
async function act(shell: Shell, config: Config, name: string, action: (client: QueueClient) => Promise<void>): Promise<boolean> {
  const known = await isKnown(shell, config, name)
  const client = await shell.openQueueClient(config)
  try {
    await action(client)
  } finally {
    await client.close()
  }
  return known
}

interface SuspendOptions {
  readonly for?: Duration
  readonly reason?: string
}

async function suspend(shell: Shell, asked: string, options: SuspendOptions, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const { for: duration = null, reason = null } = options
  if (duration !== null && duration <= 0) throw new CommandError(EX.usage, '--for must be longer than 0')
  if (asked.includes('*'))
    throw new CommandError(
      EX.usage,
      `${maskControls(asked)} names no destination, since * matches nothing here: suspend each one by its name`,
    )
  const name = asked.toLowerCase()
  const known = await act(shell, config, name, (client) => client.suspend(name, { who: shell.user, duration, reason }))
  const end = duration === null ? 'until `deferd destination resume`' : `until ${localTime(shell.clock.now() + duration, shell.clock)}`
  await shell.stdout.write(`${maskControls(`${name}: suspended ${end}${reason === null ? '' : `: ${reason}`}`)}\n`)
  // Suspending a misspelt name would have no effect, nor would suspending the domain of mail that is routed to a relay host.
  if (!known) {
    await shell.stderr.write(
      'deferd: warning: no mail is queued for this destination; `deferd destination list` shows the destinations with mail\n',
    )
  }
}

async function resume(shell: Shell, asked: string, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const name = asked.toLowerCase()
  if (!(await isKnown(shell, config, name))) {
    const text = `nothing is known under the name ${maskControls(asked)}, so nothing was resumed`
    throw new CommandError(EX.data, `${text}; deferd destination list shows all names`)
  }
  await act(shell, config, name, (client) => client.resume(name, shell.user))
  const provider = await providerThatStops(shell, config, name)
  if (provider === null) return await shell.stdout.write(`${maskControls(name)}: resumed\n`)
  await shell.stdout.write(
    `${maskControls(name)}: not suspended itself any more, but with provider ${provider}: deferd provider resume ${provider}\n`,
  )
}

/** The suspended provider of a destination; null for none. */
const providerThatStops = (shell: Shell, config: Config, name: string): Promise<string | null> =>
  withSource(shell, config, async (source) => (await (await shownDestinations(shell, config, source)).named(name))?.suspended_with ?? null)

export function addDestination(program: Command, shell: Shell): void {
  const parent = program.command('destination').description('list, show, suspend and resume destinations')
  subcommand(parent, 'list', 'list destinations with mail, and those that are dead or suspended')
    .option('--all', 'also destinations without mail that are neither dead nor suspended')
    .addOption(
      new Option('--sort <order>', 'most waiting mail first (default), or by name, state, or next attempt').choices(DESTINATION_SORTS),
    )
    .addOption(new Option('--tsv', 'exact tab-separated values, without headings').conflicts('json'))
    .option('--json', 'one JSON object per destination, all of them')
    .addHelpText(
      'after',
      `
WAITING counts recipients. ACTIVE is the number of deliveries now, and of those allowed at once. NEXT is the time until the next
attempt, the probe of a dead destination, or the end of a suspension. --tsv has the columns name, waiting, in flight, window, next
attempt, state, reason.`,
    )
    .action((options: ListOptions, command: Command) => list(shell, options, command))
  subcommand(parent, 'show <name>', 'show one destination')
    .option('--json', 'as a JSON object')
    .action((name: string, options: { readonly json?: true }, command: Command) => show(shell, name, options, command))
  subcommand(parent, 'suspend <name>', 'stop deliveries to a destination until it is resumed, also across restarts')
    .option('--for <time>', 'resume automatically after this time: 30m, 2h, 1d', durationArgument)
    .option('--reason <text>', 'reason, shown in listings and in the log')
    .addHelpText('after', '\nExample:\n  deferd destination suspend gmail.com --for 2h --reason "rate limited"')
    .action((name: string, options: SuspendOptions, command: Command) => suspend(shell, name, options, command))
  subcommand(parent, 'resume <name>', 'resume deliveries to a suspended destination').action(
    (name: string, _options: unknown, command: Command) => resume(shell, name, command),
  )
}
