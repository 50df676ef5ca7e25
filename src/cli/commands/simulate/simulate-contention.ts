/**
 * `deferd simulate contention`: compares retry policies by the load they put on a server. Four models exist: clients of a server
 * that refuses connections above a limit (default), clients that update one row (AWS), a server that crashes under load
 * (Ethernet), and Postfix's experiment with a server that replies 421.
 */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { factor } from '../../../config/values/values.ts'
import type { Duration } from '../../../system/clock.ts'
import { CLIENTS, runClient } from '../../../simulator/contention/clients.ts'
import { contentionPage, modelPage } from '../../../simulator/pages/contention-page.ts'
import { MODELS, type ModelName, runModel } from '../../../simulator/contention/models.ts'
import { renderPage } from '../../../simulator/pages/page.ts'
import { countArgument, durationArgument } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { barText, ProgressLine } from '../../shell/progress.ts'
import type { Shell } from '../../shell/shell.ts'
import { contentionRows, contentionTable, modelTable, type Run } from '../../render/contention-table.ts'
import { checked, commandLine, positiveArgument, several, writeTextFile } from './simulate-options.ts'
import { jsonLine } from '../../../presentation/text.ts'
import { displayOf } from '../../shell/display.ts'

interface Options {
  readonly model: 'server' | ModelName
  readonly client?: readonly string[]
  readonly seed: number
  readonly runs: number
  readonly maxBusy: number
  readonly requests: number
  readonly clients?: number
  readonly wait: Duration
  readonly decreaseFactor: number
  readonly html?: string
  readonly json?: true
}

/** Clients compared by default. */
const DEFAULT_CLIENTS = ['fixed', 'backoff-none', 'backoff', 'token-bucket', 'tahoe', 'reno', 'postfix', 'oracle']

function runAll({ clock, stderr }: Shell, clients: readonly string[], options: Options): { runs: readonly Run[]; progress: ProgressLine } {
  const progress = new ProgressLine(stderr, clock)
  const runs: Run[] = []
  const total = clients.length * options.runs
  for (const client of clients) {
    for (let seed = options.seed; seed < options.seed + options.runs; seed++) {
      const finished = runs.length
      const onProgress = (done: number): void => progress.show(barText((finished + done) / total, `${client}, seed ${seed}`))
      const { requests, maxBusy, decreaseFactor: decrease } = options
      runs.push({
        client,
        seed,
        result: checked(() => runClient({ client, seed, requests, maxBusy, decrease, wait: options.wait * 1000, onProgress })),
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

async function printServer(shell: Shell, command: Command, options: Options): Promise<void> {
  const { runs, progress } = runAll(shell, options.client ?? DEFAULT_CLIENTS, options)
  await progress.finish()
  if (options.html !== undefined) {
    const firstRuns = runs.filter(({ seed }) => seed === options.seed)
    writeTextFile(
      options.html,
      renderPage(contentionPage(firstRuns, options.requests, contentionRows(runs, options), commandLine(command))),
    )
  }
  if (options.json === true) return shell.stdout.write(runs.map((run) => jsonLine(runJson(run, options))).join(''))
  return shell.stdout.write(contentionTable(runs, options, displayOf(shell)))
}

async function printModel(shell: Shell, command: Command, model: ModelName, options: Options): Promise<void> {
  const results = checked(() => runModel(model, options))
  const { about, columns } = MODELS[model]
  const headings = columns.map(([heading]) => heading)
  const rows = results.map((result) => columns.map(([, member, digits]) => figure(result[member], digits)))
  if (options.html !== undefined) {
    writeTextFile(options.html, renderPage(modelPage(model, results, { headings, rows }, commandLine(command))))
  }
  if (options.json === true) return shell.stdout.write(results.map((result) => jsonLine({ model, ...result })).join(''))
  return shell.stdout.write(modelTable(about, { headings, rows }, displayOf(shell)))
}

const figure = (value: string | number | undefined, digits: number): string =>
  typeof value === 'number' ? value.toFixed(digits) : (value ?? '')

async function print(shell: Shell, command: Command, options: Options): Promise<void> {
  if (options.requests > 2 ** 29) throw new CommandError(EX.usage, '--requests is more than the simulator can number')
  return options.model === 'server' ? printServer(shell, command, options) : printModel(shell, command, options.model, options)
}

/** Parses --decrease-factor. Throws InvalidArgumentError. */
function factorArgument(text: string): number {
  const reading = factor(text)
  if ('value' in reading) return reading.value
  throw new InvalidArgumentError('Expected a number above 0 and below 1.')
}

export function addSimulateContention(parent: Command, shell: Shell): void {
  parent
    .command('contention')
    .description('compare retry policies by the load they put on a server')
    .addOption(new Option('--model <name>', 'the experiment').choices(['server', ...Object.keys(MODELS)]).default('server'))
    .option('--client <name>', 'a client of the model or a retry policy; repeatable', several)
    .option('--seed <number>', 'seed of the first run', countArgument, 1)
    .option('--runs <number>', 'runs per client, each with the next seed', positiveArgument, 1)
    .option('--max-busy <number>', 'connections the server holds at once', positiveArgument, 50)
    .option('--requests <number>', 'number of requests', positiveArgument, 2000)
    .option('--clients <number>', 'number of clients (models row and crash)', positiveArgument)
    .addOption(new Option('--wait <time>', 'wait of the client fixed').argParser(durationArgument).default(1000, '1s'))
    .addOption(
      new Option('--decrease-factor <number>', 'part that the windows of reno and tahoe keep after a refusal')
        .argParser(factorArgument)
        .default(0.5),
    )
    .option('--html <file>', 'write a page with plots')
    .option('--json', 'one JSON object per run')
    .addHelpText(
      'after',
      () =>
        `\nClients of the server:\n${Object.entries(CLIENTS)
          .map(([name, { about }]) => `  ${name.padEnd(22)}${about}\n`)
          .join('')}`,
    )
    .action((options: Options, command: Command) => print(shell, command, options))
}
