/** `deferd suppression list`, `show` and `export`. */
import type { Command } from 'commander'
import { isoTime, instantOf, jsonLine, maskControls, relative } from '../../../presentation/text.ts'
import { csvRows } from '../../../resources/csv.ts'
import { suppressionShape, type SuppressionJson, type SuppressionStopsJson } from '../../../resources/records/suppression-json.ts'
import {
  suppressionLines,
  suppressions,
  suppressionsOf,
  suppressionStops,
  type SuppressionQuery,
} from '../../../queries/records/suppression-entries.ts'
import { ALL_SENDERS } from '../../../store/records/suppression-entry.ts'
import type { WallTime } from '../../../system/clock.ts'
import { queryOf, segment } from '../../queue-client/api-connection.ts'
import { tableHeading, tableRow, widthBeside, type Column } from '../../render/table.ts'
import type { Display } from '../../render/style.ts'
import { configOf } from '../../shell/config-options.ts'
import { displayOf } from '../../shell/display.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { resourceOf, withSource, type QueueSource, type Shell } from '../../shell/shell.ts'
import { addressOf, entriesText, queryIn, type FilterOptions } from './suppression-filter.ts'

const pathOf = ({ since, ...query }: SuppressionQuery): string =>
  `/suppressions${queryOf({ ...query, since: since === undefined ? undefined : `${Math.round(since / 1000)}s` })}`

async function* entriesOf(source: QueueSource, query: SuppressionQuery, limit: number): AsyncGenerator<SuppressionJson> {
  if (source.api !== null) return yield* source.api.rows<SuppressionJson>(pathOf(query), limit)
  let left = limit
  for await (const page of suppressions(source, query)) {
    yield* page.slice(0, left)
    left -= page.length
    if (left <= 0) return
  }
}

export async function list(
  shell: Shell,
  { limit, json, ...filter }: FilterOptions & { limit?: number; json?: true },
  command: Command,
): Promise<void> {
  const { config } = await configOf(shell, command)
  const query = queryIn(filter)
  await withSource(shell, config, async (source) => {
    const display = displayOf(shell)
    const now = source.clock.wall.now()
    let count = 0
    for await (const entry of entriesOf(source, query, limit ?? Infinity)) {
      if (json !== true && count === 0) await shell.stdout.write(`${tableHeading(columnsOf(display), display)}\n`)
      count++
      await shell.stdout.write(json === true ? jsonLine(entry) : `${tableRow(rowOf(entry, now), columnsOf(display), display)}\n`)
    }
    if (json === true) return
    const { stops } = await resourceOf<SuppressionStopsJson>(source, '/suppression-stops', suppressionStops)
    await shell.stdout.write(count === 0 ? 'No entries.\n' : `${entriesText(count)}\n`)
    for (const { scope } of stops)
      await shell.stdout.write(`No more addresses of ${scope} are listed: deferd suppression resume ${scope}\n`)
  })
}

/** Columns beside the address, which has the rest of the line. */
const OTHERS: readonly Column[] = [
  { heading: 'SCOPE', width: 20, cut: 'middle' },
  { heading: 'REASON', width: 11 },
  { heading: 'ENDS', width: 11 },
]

const columnsOf = (display: Display): readonly Column[] => [
  { heading: 'ADDRESS', width: Math.min(44, Math.max(12, widthBeside(OTHERS, display) - 1)), cut: 'middle' },
  ...OTHERS,
]

const rowOf = ({ address, scope, reason, expire_time: end }: SuppressionJson, now: WallTime): readonly string[] => [
  address,
  scope,
  reason ?? '',
  end === null ? 'never' : relative(instantOf(end), now),
]

export async function show(shell: Shell, given: string, { json }: { json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const address = addressOf(given)
  await withSource(shell, config, async (source) => {
    const { entries } = await resourceOf(source, `/suppressions/${segment(address)}`, (opened) => suppressionsOf(opened, address))
    if (entries.length === 0) throw new CommandError(EX.data, `${maskControls(address)} is not on the suppression list`)
    await shell.stdout.write(entries.map((one) => (json === true ? jsonLine(one) : entryText(one))).join(''))
  })
}

const STATES = { listed: 'is listed', counting: 'was refused, and is not listed yet', ended: 'was listed' } as const

function entryText(one: SuppressionJson): string {
  const at = (seconds: number | null): string => (seconds === null ? '' : isoTime(instantOf(seconds)))
  const facts: readonly (readonly [string, string])[] = [
    ['reason', one.reason ?? ''],
    ['since', at(one.since_time)],
    ['until', one.reason === null ? '' : one.expire_time === null ? 'removed' : at(one.expire_time)],
    ['reply', one.text ?? ''],
    ['refusals', one.hits === 0 ? '' : `${one.hits}, ${at(one.first_hit_time)} to ${at(one.last_hit_time)}`],
    ['destination', one.destination ?? ''],
    ['added by', one.added_by],
    ['listings', one.listings === 0 ? '' : String(one.listings)],
  ]
  const senders = one.scope === ALL_SENDERS ? 'all senders' : `senders at ${one.scope}`
  const lines = [
    `${one.address} ${STATES[one.state]} for ${senders}`,
    ...facts.flatMap(([name, value]) => (value === '' ? [] : [`  ${name}: ${value}`])),
  ]
  return lines.map((line) => `${maskControls(line)}\n`).join('')
}

export async function exportAll(
  shell: Shell,
  { format, ...filter }: FilterOptions & { format: 'csv' | 'json' },
  command: Command,
): Promise<void> {
  const { config } = await configOf(shell, command)
  const query = queryIn(filter)
  await withSource(shell, config, async (source) => {
    const lines: AsyncIterable<Uint8Array | string> =
      source.api === null ? suppressionLines(source, query) : linesOf(source.api.rows<SuppressionJson>(pathOf(query)))
    const chunks = format === 'json' ? lines : csvRows({ shape: suppressionShape, rowsOf: null }, lines)
    for await (const chunk of chunks) await shell.stdout.write(chunk)
  })
}

async function* linesOf(entries: AsyncIterable<SuppressionJson>): AsyncGenerator<string> {
  for await (const entry of entries) yield jsonLine(entry)
}
