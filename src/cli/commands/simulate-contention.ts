/**
 * `deferd simulate contention`: what retries do to the other side. The client/server model of 2019 by default; also clients of one row
 * (AWS), a server that crashes under load (the Ethernet approach), and Postfix's experiment with a server that answers 421.
 */
import { type Command, Option } from 'commander'
import type { Duration } from '../../mail/clock.ts'
import { CLIENTS, runClient } from '../../simulator/contention/clients.ts'
import type { ContentionResult } from '../../simulator/contention/contention.ts'
import { MODELS, type ModelName, runModel } from '../../simulator/contention/models.ts'
import { Progress } from '../../simulator/progress.ts'
import { blockRow } from '../../simulator/terminal-plot.ts'
import { countArgument, durationArgument } from '../command.ts'
import { CommandError, EX, type Shell } from '../shell.ts'
import { checked, positiveArgument, several } from '../simulation-input.ts'
import { clipped, grouped, jsonLine } from '../text.ts'

interface Options {
  readonly model: 'server' | ModelName
  readonly client?: readonly string[]
  readonly seed: number
  readonly runs: number
  readonly maxBusy: number
  readonly requests: number
  readonly clients?: number
  readonly wait: Duration
  readonly json?: true
}

interface Run {
  readonly client: string
  readonly seed: number
  readonly result: ContentionResult
}

/** What a page or a table shows of one client. */
const DEFAULT_CLIENTS = ['fixed', 'backoff-none', 'backoff', 'token-bucket', 'tahoe', 'reno', 'postfix', 'oracle']

function runAll({ clock, stderr }: Shell, clients: readonly string[], options: Options): { runs: readonly Run[]; progress: Progress } {
  const progress = new Progress(stderr, clock)
  const runs: Run[] = []
  const total = clients.length * options.runs
  for (const client of clients) {
    for (let seed = options.seed; seed < options.seed + options.runs; seed++) {
      const finished = runs.length
      const onProgress = (done: number): void => progress.report((finished + done) / total, `${client}, seed ${seed}`)
      const { requests, maxBusy } = options
      runs.push({
        client,
        seed,
        result: checked(() => runClient({ client, seed, requests, maxBusy, wait: options.wait * 1000, onProgress })),
      })
    }
  }
  return { runs, progress }
}

const runJson = ({ client, seed, result }: Run, { maxBusy, requests }: Options): object => ({
  client,
  seed,
  max_busy: maxBusy,
  requests,
  makespan: result.makespan / 1e6,
  attempts: result.attempts,
  completed: result.completed,
})

const HEADING = ['CLIENT', 'MAKESPAN', 'ATTEMPTS', 'DONE', '99 % BY', 'OPEN CONNECTIONS']
const WIDTHS = [20, 16, 10, 7, 9]

const row = (cells: readonly string[]): string =>
  cells
    .map((cell, i) => cell.padEnd(WIDTHS[i] ?? 0))
    .join(' ')
    .trimEnd()

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

/** One line per client; the curve is that of its first run. */
function tableRow(client: string, runs: readonly Run[], longest: number, options: Options, width: number): string {
  const makespans = runs.map(({ result }) => result.makespan / 1e6)
  const [first] = runs
  const collapsed = runs.some(({ result }) => result.completed < options.requests)
  const band = runs.length > 1 ? ` ${percentile(makespans, 0.05).toFixed(0)}–${percentile(makespans, 0.95).toFixed(0)}` : ''
  const curve = (first?.result.samples ?? []).map(({ time, busy }) => ({ x: time, y: busy }))
  return row([
    clipped(client, WIDTHS[0] ?? 0),
    collapsed ? 'collapsed' : `${mean(makespans).toFixed(1)} s${band}`,
    grouped(Math.round(mean(runs.map(({ result }) => result.attempts)))),
    grouped(Math.round(mean(runs.map(({ result }) => result.completed)))),
    `${(percentile([...(first?.result.latencies ?? [])], 0.99) / 1e6).toFixed(1)} s`,
    blockRow(curve, { x: longest, y: 2 * options.maxBusy }, Math.max(10, width)),
  ])
}

function table(clients: readonly string[], runs: readonly Run[], options: Options, columns: number): string {
  const finished = runs.filter(({ result }) => result.completed === options.requests)
  const longest = Math.min(
    240,
    (finished.length > 0 ? finished : runs).reduce((most, { result }) => Math.max(most, result.makespan / 1e6), 1),
  )
  const width = columns - WIDTHS.reduce((sum, cell) => sum + cell + 1, 0) - 1
  const lines = clients.map((client) =>
    tableRow(
      client,
      runs.filter((run) => run.client === client),
      longest,
      options,
      width,
    ),
  )
  const best = (options.requests * 0.5) / options.maxBusy
  return [
    row(HEADING),
    ...lines,
    '',
    `${grouped(options.requests)} requests, one each millisecond, at a server of ${options.maxBusy} connections; ${best.toFixed(1)} s would do.`,
    `The curves go from 0 to ${longest.toFixed(0)} s; a full block is ${2 * options.maxBusy} connections or more.`,
  ]
    .map((line) => `${line}\n`)
    .join('')
}

async function printServer(shell: Shell, options: Options): Promise<void> {
  const clients = options.client ?? DEFAULT_CLIENTS
  const { runs, progress } = runAll(shell, clients, options)
  await progress.finish()
  if (options.json === true) return shell.stdout.write(runs.map((run) => jsonLine(runJson(run, options))).join(''))
  return shell.stdout.write(table(clients, runs, options, shell.stdout.columns ?? 100))
}

async function printModel(shell: Shell, model: ModelName, options: Options): Promise<void> {
  const results = checked(() => runModel(model, options))
  if (options.json === true) return shell.stdout.write(results.map((result) => jsonLine({ model, ...result })).join(''))
  const { about, columns } = MODELS[model]
  const lines = results.map((result) =>
    columns
      .map(([, member, digits]) => figure(result[member], digits).padEnd(18))
      .join('')
      .trimEnd(),
  )
  return shell.stdout.write(
    `${about}\n\n${columns
      .map(([heading]) => heading.padEnd(18))
      .join('')
      .trimEnd()}\n${lines.join('\n')}\n`,
  )
}

const figure = (value: string | number | undefined, digits: number): string =>
  typeof value === 'number' ? value.toFixed(digits) : (value ?? '')

async function print(shell: Shell, options: Options): Promise<void> {
  if (options.requests > 2 ** 29) throw new CommandError(EX.usage, '--requests is more than the simulator can number')
  return options.model === 'server' ? printServer(shell, options) : printModel(shell, options.model, options)
}

export function addSimulateContention(parent: Command, shell: Shell): void {
  parent
    .command('contention')
    .description('what retries do to the other side')
    .addOption(new Option('--model <name>', 'the experiment').choices(['server', ...Object.keys(MODELS)]).default('server'))
    .option('--client <name>', 'a client of the model, or any policy; several are compared', several)
    .option('--seed <number>', 'of the first run', countArgument, 1)
    .option('--runs <number>', 'runs per client, each with the next seed', positiveArgument, 1)
    .option('--max-busy <number>', 'connections the server holds at once', positiveArgument, 50)
    .option('--requests <number>', 'how many requests arrive', positiveArgument, 2000)
    .option('--clients <number>', 'how many clients there are, in the models row and crash', positiveArgument)
    .option('--wait <time>', 'of the client fixed', durationArgument, 1000)
    .option('--json', 'one JSON object per run')
    .addHelpText(
      'after',
      () =>
        `\nClients of the server:\n${Object.entries(CLIENTS)
          .map(([name, { about }]) => `  ${name.padEnd(22)}${about}\n`)
          .join('')}`,
    )
    .action((options: Options) => print(shell, options))
}
