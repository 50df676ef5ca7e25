/** `deferd schedule`: the work of the `[schedule.NAME]` tables: list, show, and run now. */
import type { Command } from 'commander'
import { instantOf, jsonLine, localTime, maskControls, plural, relative } from '../../presentation/text.ts'
import { plannedRuns, plannedRunsOf, type PlannedRunsView } from '../../queries/planned-runs.ts'
import type { Schedules } from '../../queue/schedule-state.ts'
import type { ScheduleDetailsJson, ScheduleRunJson } from '../../resources/schedule-json.ts'
import { NoSuchQueue } from '../../store/errors.ts'
import type { Clock } from '../../system/clock.ts'
import { clockOf } from '../../system/queue-clock.ts'
import { segment } from '../queue-client/api-connection.ts'
import { columnsFor, tableHeading, tableRow } from '../render/table.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { resourceOf, withSource, type Shell } from '../shell/shell.ts'

interface JsonOption {
  readonly json?: true
}

/** Stands for a queue that is not there yet, in which nothing has run. */
const NOTHING_RUN = { records: { scheduleRuns: { last: async () => [], of: async () => [], unended: async () => [] } } }

/** Reads schedules: those of the configuration here with the runs in the queue, or those of the relay of `--host`. */
async function read<T>(
  shell: Shell,
  command: Command,
  path: string,
  query: (view: PlannedRunsView, tables: Schedules) => Promise<T>,
): Promise<T> {
  const { config } = await configOf(shell, command)
  const { schedule: tables } = config
  try {
    return await withSource(shell, config, (source) => resourceOf(source, path, (opened) => query(opened, tables)))
  } catch (error) {
    if (!(error instanceof NoSuchQueue)) throw error
    return query({ reader: NOTHING_RUN, clock: clockOf(null, shell.clock) }, tables)
  }
}

async function list(shell: Shell, { json }: JsonOption, command: Command): Promise<void> {
  const { schedules } = await read(shell, command, '/schedules', plannedRuns)
  if (json === true) return shell.stdout.write(schedules.map(jsonLine).join(''))
  if (schedules.length === 0) return shell.stdout.write('The configuration has no [schedule.NAME] table.\n')
  const now = shell.clock.now()
  const rows = schedules.map((one) => [
    one.schedule,
    one.do,
    one.at,
    one.zone,
    one.next_time === null ? 'never' : relative(instantOf(one.next_time), now),
    one.last_run === null ? '-' : one.last_run.result,
    one.last_run === null ? '-' : relative(instantOf(one.last_run.end_time ?? one.last_run.begin_time), now),
  ])
  const display = displayOf(shell)
  const columns = columnsFor(['NAME', 'DOES', 'AT', 'ZONE', 'NEXT', 'LAST', 'ENDED'], rows, display)
  const lines = [tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))]
  await shell.stdout.write(lines.map((line) => `${line}\n`).join(''))
}

function runLine(run: ScheduleRunJson, clock: Pick<Clock, 'zone'>): string {
  const by = run.ordered_by === null ? '' : ` by order of ${run.ordered_by}`
  const text = run.text === '' ? '' : `: ${run.text}`
  return `${localTime(instantOf(run.planned_time), clock)}  ${run.result}${by}${text}`
}

/** Number of runs on the screen; JSON has all. */
const SHOWN_RUNS = 10

function screen(one: ScheduleDetailsJson, clock: Pick<Clock, 'zone'>): string {
  const fact = (name: string, value: string): string => `${name.padEnd(14)}${value}`
  const members = Object.entries(one.members).map(([name, value]) => fact(name, Array.isArray(value) ? value.join(', ') : String(value)))
  const lines = [
    fact('name', one.schedule),
    fact('does', one.do),
    ...members,
    fact('at', `${one.at} (${one.zone})`),
    ...one.next_times.map((at, n) => fact(n === 0 ? 'next' : '', localTime(instantOf(at), clock))),
    ...one.runs.slice(0, SHOWN_RUNS).map((run, n) => fact(n === 0 ? 'runs' : '', runLine(run, clock))),
    ...(one.runs.length > SHOWN_RUNS ? [fact('', `and ${plural(one.runs.length - SHOWN_RUNS, 'earlier run')}: --json`)] : []),
  ]
  return lines.map((line) => `${maskControls(line)}\n`).join('')
}

async function show(shell: Shell, name: string, { json }: JsonOption, command: Command): Promise<void> {
  const path = `/schedules/${segment(name)}`
  const found = await read(shell, command, path, (view, tables) => plannedRunsOf(view, tables, name))
  if (found === undefined)
    throw new CommandError(EX.data, `there is no table [schedule.${maskControls(name)}]; deferd schedule list shows all tables`)
  await shell.stdout.write(json === true ? jsonLine(found) : screen(found, shell.clock))
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
