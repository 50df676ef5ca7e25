/** `deferd status`: one screen about the queue; `deferd top`: the same, repeated while the daemon runs. */
import { clockOf } from '../../system/queue-clock.ts'
import { type Command, Option } from 'commander'
import { readStatus } from '../../queue/queue-status.ts'
import type { Config } from '../../config/options.ts'
import { NAMED_INSTANT } from '../../mail/message-times.ts'
import { SECOND, sleep, type Duration } from '../../system/clock.ts'
import { jsonLine, localTime } from '../../presentation/text.ts'
import { statusJson, type NowJson, type StatusJson } from '../../resources/status-json.ts'
import type { NodeJson, NodesJson } from '../../resources/node-json.ts'
import { listedNodes } from '../queue-client/listed-nodes.ts'
import { nodeTable } from '../render/node-list.ts'
import { isTrend, showTrend, type TrendOptions } from '../queue-client/shown-trend.ts'
import { statusScreen } from '../render/status-screen.ts'
import { configOf, countArgument, durationArgument, instantArgument, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { displayOf } from '../shell/display.ts'
import { withSource, type QueueSource, type RelayApi, type Shell } from '../shell/shell.ts'

interface Options extends TrendOptions {
  readonly json?: true
}

interface TopOptions {
  readonly json?: true
  readonly interval: Duration
  readonly count?: number
}

const LEAST_WIDTH = 60
/** Clears a terminal and moves the cursor to its top left corner (ECMA-48 CUP, ED). */
const CLEAR = '\u001b[H\u001b[2J'

/** The status of a queue, the name of its relay, and the nodes that share it; null for a queue of one daemon. */
interface Shown {
  readonly name: string
  readonly status: StatusJson
  readonly nodes: readonly NodeJson[] | null
}

interface Form {
  readonly json: boolean
  /** Lines of the screen; null for any number. */
  readonly rows: number | null
}

function textOf(shell: Shell, { name, status, nodes }: Shown, { json, rows }: Form): string {
  if (json) return jsonLine({ ...status, ...(nodes === null ? {} : { nodes }) })
  const narrow = displayOf(shell)
  const display = { ...narrow, width: Math.max(LEAST_WIDTH, narrow.width) }
  const below = nodes === null ? '' : `\n${nodeTable(nodes, clockOf(null, shell.clock), display)}`
  const left = rows === null ? null : rows - (below.split('\n').length - 1)
  return `${statusScreen(status, { name, clock: shell.clock, display, rows: left, nodes: nodes ?? [] })}${below}`
}

async function nodesOf(shell: Shell, config: Config): Promise<readonly NodeJson[] | null> {
  const directory = await shell.openNodes(config)
  if (directory === null) return null
  try {
    return await listedNodes(directory, config.node_lease, clockOf(null, shell.clock).wall)
  } finally {
    await directory.close()
  }
}

async function remoteStatus(api: RelayApi): Promise<Shown> {
  const { name, oldest: _oldest, ages: _ages, attention: _attention, ...status } = await api.get<NowJson>('/now')
  return { name, status, nodes: (await api.get<NodesJson>('/nodes')).nodes }
}

/** Throws without a running daemon when one is needed. */
async function current(shell: Shell, config: Config, source: QueueSource, needsDaemon: boolean): Promise<Shown> {
  if (source.api !== null) return remoteStatus(source.api)
  const live = await shell.liveStatus(config)
  if (live === null && needsDaemon)
    throw new CommandError(EX.unavailable, `no daemon runs for ${config.queue_directory}; deferd status reads the queue without one`)
  const status = await readStatus({ reader: source.reader, clock: source.clock, schedules: config.schedule }, live)
  return { name: config.myhostname, status: statusJson(status, source.clock.wall), nodes: await nodesOf(shell, config) }
}

async function show(shell: Shell, options: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  if (isTrend(options)) return await showTrend(shell, config, options)
  await withSource(shell, config, async (source) =>
    shell.stdout.write(textOf(shell, await current(shell, config, source, false), { json: options.json === true, rows: null })),
  )
}

/** An answer of the daemon; null when it does not answer in time, as when its processor is busy. */
async function answerOf(ask: () => Promise<Shown>): Promise<Shown | null> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof CommandError && error.exitCode === EX.temporary) return null
    throw error
  }
}

async function top(shell: Shell, { json, interval, count = Infinity }: TopOptions, command: Command): Promise<void> {
  if (interval < SECOND / 10) throw new CommandError(EX.usage, '--interval must be at least 100ms')
  const { config } = await configOf(shell, command)
  const clear = json === true || shell.stdout.columns === null ? '' : CLEAR
  await withSource(shell, config, async (source) => {
    for (let shown = 0; shown < count; shown++) {
      if (shown > 0) await sleep(shell.clock, interval)
      const status = await answerOf(() => current(shell, config, source, true))
      if (status === null) {
        await shell.stderr.write(`deferd: the daemon does not answer, ${localTime(shell.clock.now(), shell.clock)}; top waits for it\n`)
        continue
      }
      // The line below the last one stays free: a line end there would move the first one out of the screen.
      const rows = json === true || shell.stdout.rows === null ? null : shell.stdout.rows - 1
      await shell.stdout.write(clear + textOf(shell, status, { json: json === true, rows }))
    }
  })
}

export function addStatus(program: Command, shell: Shell): void {
  subcommand(program, 'status', 'print rates, queues, destinations that need attention and the balance')
    .option('--since <time>', 'the queue over time, from this long ago: 2h, 7d, 400d', durationArgument)
    .option('--from <time>', `the queue over time, from this time on: ${NAMED_INSTANT}`, instantArgument)
    .option('--to <time>', `the queue over time, until this time: ${NAMED_INSTANT}`, instantArgument)
    .option('--json', 'as a JSON object')
    .addHelpText(
      'after',
      `
Figures are recipients. Without a running daemon there are no rates. The balance accounts for every recipient since the queue was
created: accepted = delivered + returned + deleted + waiting. Notices count as accepted; deleted includes the trash.
Over time, “waiting” is the largest backlog of an interval, without mail on hold, and p95 the delay that 95 % of the delivered mail did not exceed.`,
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
