/** `deferd provider`: lists, shows, suspends and resumes providers of mailboxes. */
import type { Command } from 'commander'
import type { Duration } from '../../system/clock.ts'
import { clockOf } from '../../system/queue-clock.ts'
import { jsonLine, localTime, maskControls } from '../../presentation/text.ts'
import { assertKnown, shownProvider, shownProviders } from '../queue-client/shown-providers.ts'
import { providerScreen, providerTable } from '../render/provider-list.ts'
import { configOf, durationArgument, subcommand } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import type { Shell } from '../shell/shell.ts'

interface JsonOption {
  readonly json?: true
}

const factsOf = (shell: Shell) => ({ now: clockOf(null, shell.clock).wall.now(), display: displayOf(shell) })

async function list(shell: Shell, { json }: JsonOption, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const providers = await shownProviders(shell, config)
  await shell.stdout.write(json === true ? providers.map(jsonLine).join('') : providerTable(providers, factsOf(shell)))
}

async function show(shell: Shell, asked: string, { json }: JsonOption, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const provider = await shownProvider(shell, config, asked.toLowerCase())
  await shell.stdout.write(json === true ? jsonLine(provider) : providerScreen(provider, factsOf(shell)))
}

/** Acts on a provider as the owner of the queue, or through the daemon. */
async function act(
  shell: Shell,
  asked: string,
  command: Command,
  action: (client: QueueClient, name: string) => Promise<void>,
): Promise<string> {
  const { config } = await configOf(shell, command)
  const name = asked.toLowerCase()
  assertKnown(shell, config, name)
  const client = await shell.openQueueClient(config)
  try {
    await action(client, name)
  } finally {
    await client.close()
  }
  return name
}

interface SuspendOptions {
  readonly for?: Duration
  readonly reason?: string
}

async function suspend(shell: Shell, asked: string, options: SuspendOptions, command: Command): Promise<void> {
  const { for: duration = null, reason = null } = options
  if (duration !== null && duration <= 0) throw new CommandError(EX.usage, '--for must be longer than 0')
  const name = await act(shell, asked, command, (client, one) => client.suspendProvider(one, { who: shell.user, duration, reason }))
  const end = duration === null ? 'until `deferd provider resume`' : `until ${localTime(shell.clock.now() + duration, shell.clock)}`
  await shell.stdout.write(`${maskControls(`${name}: suspended ${end}${reason === null ? '' : `: ${reason}`}`)}\n`)
}

async function resume(shell: Shell, asked: string, command: Command): Promise<void> {
  const name = await act(shell, asked, command, (client, one) => client.resumeProvider(one, shell.user))
  await shell.stdout.write(`${maskControls(name)}: resumed\n`)
}

export function addProvider(program: Command, shell: Shell): void {
  const parent = program.command('provider').description('list, show, suspend and resume providers of mailboxes')
  subcommand(parent, 'list', 'list the providers of the configuration')
    .option('--json', 'one JSON object per provider')
    .addHelpText(
      'after',
      `
WAITING counts the recipients that wait for all destinations of a provider. ACTIVE is the number of deliveries to them now, and of those
allowed at once, RATE the deliveries per minute that may start, DESTINATIONS the number of its known destinations.`,
    )
    .action((options: JsonOption, command: Command) => list(shell, options, command))
  subcommand(parent, 'show <name>', 'show one provider with its destinations that have waiting mail')
    .option('--json', 'as a JSON object')
    .action((name: string, options: JsonOption, command: Command) => show(shell, name, options, command))
  subcommand(parent, 'suspend <name>', 'stop deliveries to all destinations of a provider until it is resumed, also across restarts')
    .option('--for <time>', 'resume automatically after this time: 30m, 2h, 1d', durationArgument)
    .option('--reason <text>', 'reason, shown in listings and in the log')
    .addHelpText(
      'after',
      `
Destinations that become known later are stopped too, on all nodes. A destination that is also suspended itself stays so when the provider
is resumed.

Example:
  deferd provider suspend google --for 2h --reason "rate limited"`,
    )
    .action((name: string, options: SuspendOptions, command: Command) => suspend(shell, name, options, command))
  subcommand(parent, 'resume <name>', 'resume deliveries to a suspended provider, also one that a reply rule suspended').action(
    (name: string, _options: unknown, command: Command) => resume(shell, name, command),
  )
}
