/**
 * `deferd destination`: where mail waits, how it goes there, and the switch that suspends a destination.
 */
import type { Command } from 'commander'
import type { Config } from '../../config/options.ts'
import type { LiveDestination } from '../../queue/operations.ts'
import type { DestinationLoad, QueueReader } from '../../queue/reader.ts'
import type { DestinationRecord } from '../../queue/store.ts'
import { configOf, subcommand } from '../command.ts'
import { CommandError, EX, type Shell } from '../shell.ts'
import { clipped, epochSeconds, grouped, harmless, jsonLine, localTime, relative } from '../text.ts'

interface Row {
  readonly name: string
  readonly load: DestinationLoad | undefined
  readonly record: DestinationRecord | undefined
  readonly live: LiveDestination | undefined
}

const PAGE = 500

function* loads(reader: QueueReader): Generator<DestinationLoad> {
  for (let after = ''; ;) {
    const page = reader.destinationLoads({ after, limit: PAGE })
    yield* page
    if (page.length < PAGE) return
    after = page.at(-1)?.destination ?? after
  }
}

/** Destinations with mail, by name, then those that are only remembered. */
function* rows(reader: QueueReader, live: readonly LiveDestination[] | null): Generator<Row> {
  const records = new Map(reader.destinationRecords().map((record) => [record.name, record]))
  const inMemory = new Map((live ?? []).map((destination) => [destination.destination, destination]))
  for (const load of loads(reader)) {
    yield { name: load.destination, load, record: records.get(load.destination), live: inMemory.get(load.destination) }
    records.delete(load.destination)
    inMemory.delete(load.destination)
  }
  for (const name of new Set([...records.keys(), ...inMemory.keys()])) {
    yield { name, load: undefined, record: records.get(name), live: inMemory.get(name) }
  }
}

const seconds = (value: number | null | undefined): number | null => (value === null || value === undefined ? null : epochSeconds(value))

const lastReply = ({ live, record }: Row): string | null => live?.lastReply ?? record?.reason?.reply ?? record?.reason?.reason ?? null

function toJson(row: Row): object {
  const { name, load, record, live } = row
  return {
    destination: name,
    window: live?.window ?? null,
    in_flight: live?.inFlight ?? load?.leased ?? 0,
    waiting: load?.waiting ?? 0,
    next_due_time: seconds(load?.nextDueAt),
    dead_until: seconds(live === undefined ? record?.deadUntil : live.deadUntil),
    probe_interval: seconds(live === undefined ? record?.probeInterval : live.probeInterval),
    suspended_by: (live === undefined ? record?.suspendedBy : live.suspendedBy) ?? null,
    last_reply: lastReply(row),
  }
}

function condition({ record, live }: Row, now: number): string {
  const suspendedBy = live === undefined ? record?.suspendedBy : live.suspendedBy
  const deadUntil = live === undefined ? record?.deadUntil : live.deadUntil
  if (suspendedBy !== null && suspendedBy !== undefined) return `suspended by ${suspendedBy}`
  if (deadUntil !== null && deadUntil !== undefined) return `does not answer, probed ${relative(deadUntil, now)}`
  return 'open'
}

function line(row: Row, now: number, width: number | null): string {
  const { name, load, live } = row
  const told = condition(row, now)
  // While it does not answer or is suspended, due times are not kept: the condition says what happens next.
  const next = told === 'open' ? (load?.nextDueAt ?? null) : null
  const cells = [
    name,
    `${grouped(load?.waiting ?? 0)} waiting`,
    live === undefined ? '' : `${live.inFlight}/${live.window} in flight`,
    next === null ? '' : `next ${relative(next, now)}`,
    told,
    lastReply(row) ?? '',
  ].map(harmless)
  return width === null
    ? cells.join('\t')
    : clipped(
        cells
          .map((cell, i) => cell.padEnd([30, 14, 15, 14][i] ?? 0))
          .join(' ')
          .trimEnd(),
        width,
      )
}

async function withRows(shell: Shell, config: Config, visit: (row: Row) => Promise<boolean>): Promise<void> {
  const reader = await shell.openReader(config)
  try {
    for (const row of rows(reader, await shell.liveDestinations(config))) if (!(await visit(row))) return
  } finally {
    reader.close()
  }
}

async function list(shell: Shell, options: { readonly json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  let count = 0
  await withRows(shell, config, async (row) => {
    count++
    await shell.stdout.write(options.json === true ? jsonLine(toJson(row)) : `${line(row, shell.clock.now(), shell.stdout.columns)}\n`)
    return true
  })
  if (count === 0 && options.json !== true && shell.stdout.columns !== null) {
    await shell.stdout.write('No mail waits anywhere, and nothing is remembered of any destination.\n')
  }
}

/** Does mail wait there, or is it known from before? */
async function isKnown(shell: Shell, config: Config, name: string): Promise<boolean> {
  let found = false
  await withRows(shell, config, (row) => {
    found = row.name === name
    return Promise.resolve(!found)
  })
  return found
}

async function show(shell: Shell, asked: string, options: { readonly json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const name = asked.toLowerCase()
  let found = false
  await withRows(shell, config, async (row) => {
    if (row.name !== name) return true
    found = true
    await shell.stdout.write(options.json === true ? jsonLine(toJson(row)) : screen(row, shell))
    return false
  })
  if (!found) throw new CommandError(EX.data, `nothing waits for ${harmless(asked)}, and nothing is remembered of it`)
}

function screen(row: Row, { clock }: Shell): string {
  const now = clock.now()
  const { load, live } = row
  const facts: readonly (readonly [string, string | null])[] = [
    ['condition', condition(row, now)],
    ['waiting', `${grouped(load?.waiting ?? 0)} recipients, ${grouped(load?.leased ?? 0)} in delivery`],
    [
      'next due',
      load?.nextDueAt === undefined || load.nextDueAt === null
        ? null
        : `${localTime(load.nextDueAt, clock)} (${relative(load.nextDueAt, now)})`,
    ],
    ['window', live === undefined ? null : `${live.window} at once, ${live.inFlight} in flight`],
    ['last reply', lastReply(row)],
  ]
  const lines = facts.filter(([, value]) => value !== null).map(([name, value]) => `  ${name.padEnd(12)}${value}`)
  return [row.name, ...lines].map((text) => `${harmless(text)}\n`).join('')
}

async function turn(shell: Shell, asked: string, action: 'suspend' | 'resume', command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const name = asked.toLowerCase()
  const known = await isKnown(shell, config, name)
  const desk = await shell.openDesk(config)
  try {
    await desk[action](name, shell.user)
  } finally {
    await desk.close()
  }
  await shell.stdout.write(`${harmless(name)}: ${action === 'suspend' ? 'suspended until `deferd destination resume`' : 'resumed'}\n`)
  // A name that is misspelt, or the domain of mail that goes by way of a relay host, would be suspended in vain.
  if (action === 'suspend' && !known) {
    await shell.stderr.write('deferd: warning: no mail waits there now; `deferd destination list` names where it does\n')
  }
}

export function addDestination(program: Command, shell: Shell): void {
  const parent = program.command('destination').description('where mail waits, and what is known of it')
  subcommand(parent, 'list', 'list destinations with mail, and those that are suspended or do not answer')
    .option('--json', 'one JSON object per destination')
    .action((options: { readonly json?: true }, command: Command) => list(shell, options, command))
  subcommand(parent, 'show <name>', 'everything about one destination')
    .option('--json', 'as a JSON object')
    .action((name: string, options: { readonly json?: true }, command: Command) => show(shell, name, options, command))
  subcommand(parent, 'suspend <name>', 'try nothing there until it is resumed, also after a restart')
    .addHelpText('after', '\nExample:\n  deferd destination suspend gmail.com')
    .action((name: string, _options: unknown, command: Command) => turn(shell, name, 'suspend', command))
  subcommand(parent, 'resume <name>', 'go on as if nothing had been').action((name: string, _options: unknown, command: Command) =>
    turn(shell, name, 'resume', command),
  )
}
