/** `deferd status`: one screen about the queue; `deferd top`: the same, repeated while the daemon runs. */
import { clockOf } from '../../system/queue-clock.ts'
import { type Command, Option } from 'commander'
import { readStatus, type QueueStatus } from '../../queue/queue-status.ts'
import type { Config } from '../../config/options.ts'
import { SECOND, sleep, type Clock, type Duration } from '../../system/clock.ts'
import { jsonLine } from '../../presentation/text.ts'
import { statusJson } from '../../resources/status-json.ts'
import { nodesJson, type NodeJson } from '../../resources/node-json.ts'
import { nodeTable } from '../render/node-list.ts'
import { statusScreen } from '../render/status-screen.ts'
import { configOf, countArgument, durationArgument, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { displayOf } from '../shell/display.ts'
import { withReader, type Shell } from '../shell/shell.ts'

interface Options {
  readonly json?: true
}

interface TopOptions extends Options {
  readonly interval: Duration
  readonly count?: number
}

const LEAST_WIDTH = 60
/** Clears a terminal and moves the cursor to its top left corner (ECMA-48 CUP, ED). */
const CLEAR = '\u001b[H\u001b[2J'

/** The status of a queue, and the nodes that share the queue; null for a queue of one daemon. */
interface Shown {
  readonly status: QueueStatus
  readonly nodes: readonly NodeJson[] | null
  readonly clock: Clock
}

function print(shell: Shell, config: Config, { status, nodes, clock }: Shown, json: boolean): string {
  if (json) return jsonLine({ ...statusJson(status, clock.wall), ...(nodes === null ? {} : { nodes }) })
  const narrow = displayOf(shell)
  const display = { ...narrow, width: Math.max(LEAST_WIDTH, narrow.width) }
  const screen = statusScreen(status, { name: config.myhostname, clock, display })
  return nodes === null ? screen : `${screen}\n${nodeTable(nodes, clockOf(null, shell.clock), display)}`
}

async function nodesOf(shell: Shell, config: Config): Promise<readonly NodeJson[] | null> {
  const directory = await shell.openNodes(config)
  if (directory === null) return null
  try {
    return nodesJson(await directory.list(), config.node_lease, clockOf(null, shell.clock).wall)
  } finally {
    await directory.close()
  }
}

async function show(shell: Shell, { json }: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withReader(shell, config, async ({ reader, clock }) => {
    const status = await readStatus(reader, await shell.liveStatus(config), clock.now())
    await shell.stdout.write(print(shell, config, { status, nodes: await nodesOf(shell, config), clock }, json === true))
  })
}

async function top(shell: Shell, { json, interval, count = Infinity }: TopOptions, command: Command): Promise<void> {
  if (interval < SECOND / 10) throw new CommandError(EX.usage, '--interval must be at least 100ms')
  const { config } = await configOf(shell, command)
  const clear = json === true || shell.stdout.columns === null ? '' : CLEAR
  await withReader(shell, config, async ({ reader, clock }) => {
    for (let shown = 0; shown < count; shown++) {
      if (shown > 0) await sleep(shell.clock, interval)
      const live = await shell.liveStatus(config)
      if (live === null)
        throw new CommandError(EX.unavailable, `no daemon runs for ${config.queue_directory}; deferd status reads the queue without one`)
      const screen = { status: await readStatus(reader, live, clock.now()), nodes: await nodesOf(shell, config), clock }
      await shell.stdout.write(clear + print(shell, config, screen, json === true))
    }
  })
}

export function addStatus(program: Command, shell: Shell): void {
  subcommand(program, 'status', 'print rates, queues, closed destinations and the balance')
    .option('--json', 'as a JSON object')
    .addHelpText(
      'after',
      `
Figures are recipients. Without a running daemon there are no rates. The balance accounts for every recipient since the queue was
created: accepted = delivered + returned + deleted + waiting. Notices count as accepted; deleted includes the trash.`,
    )
    .action((options: Options, command: Command) => show(shell, options, command))
}

export function addTop(program: Command, shell: Shell): void {
  subcommand(program, 'top', 'print the status of a running daemon again and again')
    .addOption(new Option('--interval <time>', 'time between two screens').argParser(durationArgument).default(SECOND, '1s'))
    .option('--count <n>', 'number of screens; unlimited by default', countArgument)
    .option('--json', 'one JSON object per screen')
    .addHelpText('after', '\nThe line of +, - and x below a destination is its last attempts: delivered, deferred, bounced or expired.')
    .action((options: TopOptions, command: Command) => top(shell, options, command))
}
