/** `deferd schedule`: the work of the `[schedule.NAME]` tables: list, show, and run now. */
import type { Command } from 'commander'
import type { LoadedConfig } from '../../config/load.ts'
import { jsonLine, maskControls, relative, localTime, plural } from '../../presentation/text.ts'
import { scheduleStates, type ScheduleState } from '../../queue/schedule-state.ts'
import { scheduleDetailsJson, scheduleJson, type ScheduleDetailsJson, type ScheduleRunJson } from '../../resources/schedule-json.ts'
import { NoSuchQueue } from '../../store/errors.ts'
import type { ScheduleRun } from '../../store/records/schedule-run.ts'
import { SECOND, type Clock } from '../../system/clock.ts'
import { clockOf } from '../../system/queue-clock.ts'
import { columnsFor, tableHeading, tableRow } from '../render/table.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { withReader, type Shell } from '../shell/shell.ts'

interface JsonOption {
  readonly json?: true
}

interface Known {
  readonly states: readonly ScheduleState[]
  /** Runs of the table that was asked for. */
  readonly runs: readonly ScheduleRun[]
  readonly clock: Clock
}

/** The tables with their runs. Before there is a queue, nothing has run. */
async function known(shell: Shell, { config }: LoadedConfig, asked: string | null): Promise<Known> {
  try {
    return await withReader(shell, config, async ({ reader, clock }) => ({
      states: await scheduleStates(reader, config.schedule, clock),
      runs: asked === null ? [] : await reader.records.scheduleRuns.of(asked),
      clock,
    }))
  } catch (error) {
    if (!(error instanceof NoSuchQueue)) throw error
    const clock = clockOf(null, shell.clock)
    const states = [...config.schedule.values()].map((table) => ({ table, next: table.times.next(clock.wall.now()), last: null }))
    return { states, runs: [], clock }
  }
}

const unknown = (name: string): CommandError =>
  new CommandError(EX.data, `there is no table [schedule.${maskControls(name)}]; deferd schedule list shows all tables`)

async function list(shell: Shell, { json }: JsonOption, command: Command): Promise<void> {
  const loaded = await configOf(shell, command)
  const { states, clock } = await known(shell, loaded, null)
  const values = states.map((one) => scheduleJson(one, clock.now(), clock.wall))
  if (json === true) return shell.stdout.write(values.map(jsonLine).join(''))
  if (values.length === 0) return shell.stdout.write('The configuration has no [schedule.NAME] table.\n')
  const now = clock.wall.now()
  const rows = values.map((one) => [
    one.schedule,
    one.do,
    one.at,
    one.zone,
    one.next_time === null ? 'never' : relative(one.next_time * SECOND, now),
    one.last_run === null ? '-' : one.last_run.result,
    one.last_run === null ? '-' : relative((one.last_run.end_time ?? one.last_run.begin_time) * SECOND, now),
  ])
  const display = displayOf(shell)
  const columns = columnsFor(['NAME', 'DOES', 'AT', 'ZONE', 'NEXT', 'LAST', 'ENDED'], rows, display)
  const lines = [tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))]
  await shell.stdout.write(lines.map((line) => `${line}\n`).join(''))
}

function runLine(run: ScheduleRunJson, clock: Clock): string {
  const by = run.ordered_by === null ? '' : ` by order of ${run.ordered_by}`
  const text = run.text === '' ? '' : `: ${run.text}`
  return `${localTime(run.planned_time * SECOND, clock)}  ${run.result}${by}${text}`
}

/** Number of runs on the screen; JSON has all. */
const SHOWN_RUNS = 10

function screen(one: ScheduleDetailsJson, clock: Clock): string {
  const fact = (name: string, value: string): string => `${name.padEnd(14)}${value}`
  const members = Object.entries(one.members).map(([name, value]) => fact(name, Array.isArray(value) ? value.join(', ') : String(value)))
  const lines = [
    fact('name', one.schedule),
    fact('does', one.do),
    ...members,
    fact('at', `${one.at} (${one.zone})`),
    ...one.next_times.map((at, n) => fact(n === 0 ? 'next' : '', localTime(at * SECOND, clock))),
    ...one.runs.slice(0, SHOWN_RUNS).map((run, n) => fact(n === 0 ? 'runs' : '', runLine(run, clock))),
    ...(one.runs.length > SHOWN_RUNS ? [fact('', `and ${plural(one.runs.length - SHOWN_RUNS, 'earlier run')}: --json`)] : []),
  ]
  return lines.map((line) => `${maskControls(line)}\n`).join('')
}

async function show(shell: Shell, name: string, { json }: JsonOption, command: Command): Promise<void> {
  const { states, runs, clock } = await known(shell, await configOf(shell, command), name)
  const state = states.find(({ table }) => table.name === name)
  if (state === undefined) throw unknown(name)
  const value = scheduleDetailsJson(state, runs, clock.now(), clock.wall)
  await shell.stdout.write(json === true ? jsonLine(value) : screen(value, clock))
}

async function runNow(shell: Shell, name: string, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const client = await shell.openQueueClient(config)
  try {
    const { result, text } = await client.runSchedule(name, shell.user)
    const line = `${name}: ${text}`
    if (result === 'failed') throw new CommandError(EX.ioError, maskControls(line))
    await shell.stdout.write(`${maskControls(line)}\n`)
  } finally {
    await client.close()
  }
}

export function addSchedule(program: Command, shell: Shell): void {
  const parent = program.command('schedule').description('list, show and run the work of the [schedule.NAME] tables')
  subcommand(parent, 'list', 'list the tables with their next and last runs')
    .option('--json', 'one JSON object per table')
    .action((options: JsonOption, command: Command) => list(shell, options, command))
  subcommand(parent, 'show <name>', 'show one table, its next five times and its last runs')
    .option('--json', 'as a JSON object')
    .action((name: string, options: JsonOption, command: Command) => show(shell, name, options, command))
  subcommand(parent, 'run <name>', 'have the running daemon make a run now')
    .addHelpText(
      'after',
      `
Prints the result when the run has ended. The next run stays as planned. Exit codes: 0 done; 65 there is no such table, or a run of it
goes on; 69 no daemon runs; 74 the run failed.

Example:
  deferd schedule run nightly-backup`,
    )
    .action((name: string, _options: unknown, command: Command) => runNow(shell, name, command))
}
