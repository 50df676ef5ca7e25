/** `deferd node`: lists the nodes that share the queue in PostgreSQL, drains them, and removes one that has failed. */
import { clockOf } from '../../system/queue-clock.ts'
import type { Command } from 'commander'
import type { Config } from '../../config/options.ts'
import type { ListedNode, NodeDirectory } from '../../store/membership/node-directory.ts'
import { SECOND, sleep, type Clock, type Duration } from '../../system/clock.ts'
import { nodesJson } from '../../resources/node-json.ts'
import { nodeScreen, nodeTable } from '../render/node-list.ts'
import { jsonLine, maskControls, plural } from '../../presentation/text.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'

interface JsonOption {
  readonly json?: true
}

interface Opened {
  readonly directory: NodeDirectory
  readonly config: Config
}

/** Runs `work` with the nodes of the configured queue. Throws for a queue in a folder, which has no nodes. */
async function withNodes(shell: Shell, command: Command, work: (opened: Opened) => Promise<void>): Promise<void> {
  const { config } = await configOf(shell, command)
  const directory = await shell.openNodes(config)
  if (directory === null) {
    const text = `the queue is in the folder ${config.queue_directory} and has one daemon: only a queue in PostgreSQL (queue_database) has nodes`
    throw new CommandError(EX.unavailable, text)
  }
  try {
    await work({ directory, config })
  } finally {
    await directory.close()
  }
}

/** The nodes as stored, and in JSON. */
async function nodesOf({ directory, config }: Opened, clock: Clock) {
  const nodes = await directory.list()
  return { nodes, values: nodesJson(nodes, config.node_lease, clock.wall) }
}

/** Nodes with a name or number. Throws when there is none: a new process of a node that failed has the same name. */
function named(nodes: readonly ListedNode[], asked: string): readonly ListedNode[] {
  const found = nodes.filter((node) => isNamed(node, asked))
  if (found.length > 0) return found
  throw new CommandError(EX.data, `there is no node ${maskControls(asked)}; deferd node list shows all nodes`)
}

async function list(shell: Shell, { json }: JsonOption, opened: Opened): Promise<void> {
  const clock = clockOf(null, shell.clock)
  const { values } = await nodesOf(opened, clock)
  const text = json === true ? values.map(jsonLine).join('') : nodeTable(values, clock, displayOf(shell))
  await shell.stdout.write(text)
}

async function show(shell: Shell, asked: string, { json }: JsonOption, opened: Opened): Promise<void> {
  const clock = clockOf(null, shell.clock)
  const { nodes, values } = await nodesOf(opened, clock)
  const asking = new Set(named(nodes, asked).map(({ id }) => id))
  const texts = values.filter(({ node }) => asking.has(node)).map((one) => (json === true ? jsonLine(one) : nodeScreen(one, clock)))
  await shell.stdout.write(texts.join(''))
}

const POLL_INTERVAL: Duration = SECOND / 4

interface DrainOptions {
  readonly wait?: true
}

async function drain(shell: Shell, asked: string, { wait }: DrainOptions, { directory }: Opened): Promise<void> {
  await mark(shell, asked, true, directory)
  const isBusy = async () => (await directory.list()).some((node) => isNamed(node, asked) && node.draining && node.shards + node.leased > 0)
  if (wait === true) while (await isBusy()) await sleep(shell.clock, POLL_INTERVAL)
  const done = wait === true ? 'has no mail any more' : 'gives its mail to the other nodes and refuses new mail'
  await shell.stdout.write(`${maskControls(asked)} ${done}\n`)
}

const isNamed = ({ name, id }: ListedNode, asked: string): boolean => name === asked || String(id) === asked

async function undrain(shell: Shell, asked: string, { directory }: Opened): Promise<void> {
  await mark(shell, asked, false, directory)
  await shell.stdout.write(`${maskControls(asked)} takes its share of the mail again\n`)
}

async function mark(shell: Shell, asked: string, draining: boolean, directory: NodeDirectory): Promise<void> {
  for (const { id, name } of named(await directory.list(), asked)) {
    await directory.setDraining(id, draining)
    await audit(shell, directory, { action: draining ? 'drain' : 'undrain', name, changed: 1 })
  }
}

const audit = (
  shell: Shell,
  directory: NodeDirectory,
  { action, name, changed }: { readonly action: string; readonly name: string; readonly changed: number },
): Promise<void> => directory.audit({ at: clockOf(null, shell.clock).now(), who: shell.user, action, arguments: name, changed }, name)

/** Removes nodes that do not beat for a whole lease while the command watches, with the subscriptions that only their configuration has. */
async function forget(shell: Shell, asked: string, { directory, config }: Opened): Promise<void> {
  const listed = await directory.list()
  if (!listed.some((node) => isNamed(node, asked)) && (await directory.forgetTables(asked)) > 0) {
    await audit(shell, directory, { action: 'forget', name: asked, changed: 0 })
    return shell.stdout.write(`${maskControls(asked)}: forgotten\n`)
  }
  const before = named(listed, asked)
  await sleep(shell.clock, config.node_lease)
  let forgotten = 0
  for (const { id, name, beat } of before) {
    const takeover = await directory.takeOver(id, beat)
    if (takeover === null) continue
    forgotten++
    await directory.forgetTables(name)
    await audit(shell, directory, { action: 'forget', name, changed: takeover.leases })
    const text = `${name} (${id}): forgotten; ${plural(takeover.shards, 'shard')} and ${plural(takeover.leases, 'recipient')} wait for other nodes`
    await shell.stdout.write(`${maskControls(text)}\n`)
  }
  if (forgotten > 0) return
  throw new CommandError(EX.temporary, `${maskControls(asked)} is alive: stop its daemon first, or use deferd node drain`)
}

export function addNode(program: Command, shell: Shell): void {
  const parent = program.command('node').description('list, show, drain and forget the nodes that share a queue in PostgreSQL')
  subcommand(parent, 'list', 'list the nodes')
    .option('--json', 'one JSON object per node')
    .addHelpText(
      'after',
      `
A node is active, draining, or silent: without a beat for node_lease. SHARDS is its part of the 256 shards of destinations, LEASED the
recipients in its active queue, BEAT the time since its last sign of life, NUMBER identifies this run of its daemon.`,
    )
    .action((options: JsonOption, command: Command) => withNodes(shell, command, (opened) => list(shell, options, opened)))
  subcommand(parent, 'show <name>', 'show one node')
    .option('--json', 'as a JSON object')
    .action((name: string, options: JsonOption, command: Command) =>
      withNodes(shell, command, (opened) => show(shell, name, options, opened)),
    )
  subcommand(parent, 'drain <name>', 'let other nodes take the mail of a node, and refuse new mail there with 421')
    .option('--wait', 'end when the node has no mail any more')
    .addHelpText('after', '\nExample, before a machine is stopped:\n  deferd node drain mx2 --wait')
    .action((name: string, options: DrainOptions, command: Command) =>
      withNodes(shell, command, (opened) => drain(shell, name, options, opened)),
    )
  subcommand(parent, 'undrain <name>', 'end the draining of a node').action((name: string, _options: unknown, command: Command) =>
    withNodes(shell, command, (opened) => undrain(shell, name, opened)),
  )
  subcommand(parent, 'forget <name>', 'remove a node that has failed, when no other node runs that would do it')
    .addHelpText(
      'after',
      '\nWatches the node for node_lease first, and refuses while it beats (exit code 75). Its [events] tables count no more,\nunless a node of that name runs: a subscription that no other node has in its configuration is removed.',
    )
    .action((name: string, _options: unknown, command: Command) => withNodes(shell, command, (opened) => forget(shell, name, opened)))
}
