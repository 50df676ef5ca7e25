/** `deferd node`: lists the nodes that share the queue in PostgreSQL, drains them, and removes one that has failed. */
import { SHARED_TITLES } from '../../config/values/queue-place.ts'
import { clockOf } from '../../system/queue-clock.ts'
import type { Command } from 'commander'
import type { Config } from '../../config/options.ts'
import type { NodeDirectory } from '../../store/membership/node-directory.ts'
import { MINUTE, SECOND, sleep, type Duration } from '../../system/clock.ts'
import { forgetNode, setDraining, unknownNode, type ForgottenNode } from '../../admin/queue-nodes.ts'
import type { ForgottenNodesJson, NodeJson, NodesJson } from '../../resources/node-json.ts'
import type { BetweenNodesJson, SettingsJson } from '../../resources/settings-json.ts'
import { nodeScreen, nodeTable, settingsTexts } from '../render/node-list.ts'
import { jsonLine, maskControls, plural } from '../../presentation/text.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { segment } from '../queue-client/api-connection.ts'
import { listedNodes, settingsBetween } from '../queue-client/listed-nodes.ts'
import { type RelayApi, type Shell } from '../shell/shell.ts'

interface JsonOption {
  readonly json?: true
}

/** The nodes of a queue, asked in the database or through the API of a relay. */
interface Nodes {
  /** Name of the node of this machine; null through an API. */
  readonly own: string | null
  list(): Promise<readonly NodeJson[]>
  settings(): Promise<BetweenNodesJson>
  setDraining(name: string, draining: boolean): Promise<unknown>
  forget(name: string): Promise<readonly ForgottenNode[]>
}

const noNodes = (where: string): CommandError =>
  new CommandError(EX.unavailable, `${where} and has one daemon: only a queue in ${SHARED_TITLES} has nodes`)

const storedNodes = (shell: Shell, nodes: NodeDirectory, { node_lease: lease, node_name: own }: Config): Nodes => {
  const clock = clockOf(null, shell.clock)
  const deps = { nodes, clock, lease, own }
  return {
    own,
    list: () => listedNodes(nodes, lease, clock.wall),
    settings: () => settingsBetween(nodes),
    setDraining: (asked, draining) => setDraining(deps, { asked, draining, who: shell.user }),
    forget: (asked) => forgetNode(deps, { asked, who: shell.user }),
  }
}

const remoteNodes = (api: RelayApi): Nodes => ({
  own: null,
  list: async () => {
    const { nodes } = await api.get<NodesJson>('/nodes')
    if (nodes === null) throw noNodes('the queue is in a folder')
    return nodes
  },
  settings: async () => {
    const { between_nodes: between } = await api.get<SettingsJson>('/settings')
    if (between === null) throw noNodes('the queue is in a folder')
    return between
  },
  setDraining: (name, draining) => api.json({ method: 'POST', path: `/nodes/${segment(name)}/${draining ? 'drain' : 'undrain'}` }),
  forget: async (name) =>
    ((await api.json({ method: 'DELETE', path: `/nodes/${segment(name)}`, limit: FORGET_LIMIT })) as ForgottenNodesJson).forgotten,
})

/** The answer comes after node_lease. */
const FORGET_LIMIT: Duration = 5 * MINUTE

/** Runs `work` with the nodes of the queue. Throws for a queue in a folder, which has no nodes. */
async function withNodes(shell: Shell, command: Command, work: (nodes: Nodes) => Promise<void>): Promise<void> {
  if (shell.api !== null) {
    const nodes = remoteNodes(shell.api)
    await nodes.list()
    return work(nodes)
  }
  const { config } = await configOf(shell, command)
  const directory = await shell.openNodes(config)
  if (directory === null) throw noNodes(`the queue is in the folder ${config.queue_directory}`)
  try {
    await work(storedNodes(shell, directory, config))
  } finally {
    await directory.close()
  }
}

async function list(shell: Shell, { json }: JsonOption, nodes: Nodes): Promise<void> {
  const listed = await nodes.list()
  const text = json === true ? listed.map(jsonLine).join('') : nodeTable(listed, clockOf(null, shell.clock), displayOf(shell))
  await shell.stdout.write(text)
}

const isNamed = ({ name, node }: NodeJson, asked: string): boolean => name === asked || String(node) === asked

async function show(shell: Shell, asked: string, { json }: JsonOption, nodes: Nodes): Promise<void> {
  const found = (await nodes.list()).filter((one) => isNamed(one, asked))
  if (found.length === 0) throw new CommandError(EX.data, maskControls(unknownNode(asked)))
  const clock = clockOf(null, shell.clock)
  await shell.stdout.write(found.map((one) => (json === true ? jsonLine(one) : nodeScreen(one, clock))).join(''))
}

async function settings(shell: Shell, { json }: JsonOption, nodes: Nodes): Promise<void> {
  const between = await nodes.settings()
  await shell.stdout.write(
    json === true
      ? jsonLine(between)
      : settingsTexts(between)
          .map((line) => `${maskControls(line)}\n`)
          .join(''),
  )
}

const POLL_INTERVAL: Duration = SECOND / 4

interface DrainOptions {
  readonly wait?: true
}

async function drain(shell: Shell, name: string | undefined, { wait }: DrainOptions, nodes: Nodes): Promise<void> {
  const asked = name ?? nodes.own
  if (asked === null) throw new CommandError(EX.usage, 'name a node: the relay at --host may be any of them')
  await nodes.setDraining(asked, true)
  const isBusy = async () =>
    (await nodes.list()).some((one) => isNamed(one, asked) && one.state === 'draining' && one.shards + one.leased > 0)
  if (wait === true) while (await isBusy()) await sleep(shell.clock, POLL_INTERVAL)
  const done = wait === true ? 'has no mail any more' : 'gives its mail to the other nodes and refuses new mail'
  await shell.stdout.write(`${maskControls(asked)} ${done}\n`)
}

async function undrain(shell: Shell, asked: string, nodes: Nodes): Promise<void> {
  await nodes.setDraining(asked, false)
  await shell.stdout.write(`${maskControls(asked)} takes its share of the mail again\n`)
}

async function forget(shell: Shell, asked: string, nodes: Nodes): Promise<void> {
  const forgotten = await nodes.forget(asked)
  const texts = forgotten.map(
    ({ name, node, shards, recipients }) =>
      `${name} (${node}): forgotten; ${plural(shards, 'shard')} and ${plural(recipients, 'recipient')} wait for other nodes`,
  )
  await shell.stdout.write((forgotten.length === 0 ? [`${asked}: forgotten`] : texts).map((text) => `${maskControls(text)}\n`).join(''))
}

export function addNode(program: Command, shell: Shell): void {
  const parent = program.command('node').description('list, show, drain and forget the nodes that share a queue in PostgreSQL')
  subcommand(parent, 'list', 'list the nodes')
    .option('--json', 'one JSON object per node')
    .addHelpText(
      'after',
      `
A node is active, draining, silent (without a beat for node_lease) or lost: another node has taken it over, and no node of its name has joined
since; deferd node forget removes it. SHARDS is its part of the 256 shards of destinations, LEASED the recipients in its active queue,
SLOTS the deliveries that run and their limit, BEAT the time since its last sign of life, NUMBER identifies this run of its daemon.`,
    )
    .action((options: JsonOption, command: Command) => withNodes(shell, command, (nodes) => list(shell, options, nodes)))
  subcommand(parent, 'show <name>', 'show one node')
    .option('--json', 'as a JSON object')
    .action((name: string, options: JsonOption, command: Command) =>
      withNodes(shell, command, (nodes) => show(shell, name, options, nodes)),
    )
  subcommand(parent, 'settings', 'show the settings in which nodes differ, with the value of each')
    .option('--json', 'as a JSON object')
    .addHelpText(
      'after',
      '\nCompares the settings that all nodes should share: of delivery, retries, notices and limits of the queue, and the tables. Values that\nbelong to a machine, such as its name, addresses and files, are left out. Secrets are masked.',
    )
    .action((options: JsonOption, command: Command) => withNodes(shell, command, (nodes) => settings(shell, options, nodes)))
  subcommand(parent, 'drain [name]', 'let other nodes take the mail of a node, and refuse new mail there with 421')
    .option('--wait', 'end when the node has no mail any more')
    .addHelpText(
      'after',
      '\nWithout a name, it is the node of this machine.\n\nExample, before a machine is stopped:\n  deferd node drain mx2 --wait',
    )
    .action((name: string | undefined, options: DrainOptions, command: Command) =>
      withNodes(shell, command, (nodes) => drain(shell, name, options, nodes)),
    )
  subcommand(parent, 'undrain <name>', 'end the draining of a node').action((name: string, _options: unknown, command: Command) =>
    withNodes(shell, command, (nodes) => undrain(shell, name, nodes)),
  )
  subcommand(parent, 'forget <name>', 'remove a node that has failed, when no other node runs that would do it')
    .addHelpText(
      'after',
      '\nA lost node is removed at once. Another one is watched for node_lease first, and is refused while it beats (exit code 75). Its [events] tables count no more,\nunless a node of that name runs: a subscription that no other node has in its configuration is removed.',
    )
    .action((name: string, _options: unknown, command: Command) => withNodes(shell, command, (nodes) => forget(shell, name, nodes)))
}
