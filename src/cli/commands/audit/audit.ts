/** `deferd audit`: prints the audit log, oldest first, or its last records with the newest first. */
import type { Clock, WallTime } from '../../../system/clock.ts'
import { Option, type Command } from 'commander'
import { formatInstant, isRange, NAMED_INSTANT } from '../../../mail/message-times.ts'
import { configOf, countArgument, instantArgument, subcommand } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { queryOf } from '../../queue-client/api-connection.ts'
import { type QueueSource, type RelayApi, type Shell, withSource } from '../../shell/shell.ts'
import { ANY_ENTRY, type AuditEntry, type AuditId } from '../../../store/records/audit-log.ts'
import type { QueueReader } from '../../../store/queue-reader.ts'
import { auditEntryJson, type AuditEntryJson, type AuditPageJson } from '../../../resources/operation-json.ts'
import { instantOf, isoTime, jsonLine, localTime, maskControls, plural } from '../../../presentation/text.ts'

const PAGE = 500

interface Options {
  readonly limit?: number
  readonly before?: number
  readonly recordedAfter?: WallTime
  readonly recordedBefore?: WallTime
  readonly tsv?: true
  readonly json?: true
}

/** State and reason of an operation that is not done. */
function stateText({ state, error }: AuditEntryJson): readonly string[] {
  switch (state) {
    case 'done':
      return []
    case 'running':
      return ['running']
    case 'failed':
      return [`failed: ${error ?? 'the reason is not known'}`]
    case 'cancelled':
      // The text of the error names the operator who cancelled it.
      return [error ?? 'cancelled']
  }
}

function textOf(record: AuditEntryJson, clock: Clock): string {
  const { id, time, node, who, action, arguments: words, changed, undone_by: undoneBy, request_id: request } = record
  const facts = [
    plural(changed, 'change'),
    `id ${id}`,
    ...stateText(record),
    ...(undoneBy === null ? [] : [`undone by ${undoneBy}`]),
    ...(request === null ? [] : [`request ${request}`]),
    ...(node === null ? [] : [`at ${node}`]),
  ]
  return [localTime(instantOf(time), clock), who, `${action} ${words}`, `(${facts.join(', ')})`].map(maskControls).join('  ')
}

/** A record as a line: JSON, tab-separated values, or text for people. */
function auditLine(record: AuditEntryJson, { tsv, json }: Options, clock: Clock): string {
  if (json === true) return jsonLine(record)
  if (tsv !== true) return `${textOf(record, clock)}\n`
  const { time, node, who, action, arguments: words, changed } = record
  return `${[isoTime(instantOf(time)), who, action, words, String(changed), ...(node === null ? [] : [node])].map(maskControls).join('\t')}\n`
}

/** An instant as a request has it. */
const requested = (at: WallTime | undefined): string | undefined => (at === undefined ? undefined : formatInstant(at))

/** The records of a relay, the last one first. */
async function* recordsOf(
  api: RelayApi,
  { limit = Infinity, before: end = Infinity, recordedAfter, recordedBefore }: Options,
): AsyncGenerator<AuditEntryJson> {
  const range = { recorded_after: requested(recordedAfter), recorded_before: requested(recordedBefore) }
  let left = limit
  for (let before: string | null | undefined; left > 0 && before !== null;) {
    const page: AuditPageJson = await api.get(
      `/audit${queryOf({ ...range, limit: end === Infinity ? Math.min(PAGE, left) : PAGE, before })}`,
    )
    const records = page.records.filter(({ id }) => id < end).slice(0, left)
    yield* records
    left -= records.length
    before = page.next
  }
}

async function* oldestFirst(reader: QueueReader): AsyncGenerator<readonly AuditEntry[]> {
  for (let after: AuditId = 0; ;) {
    const page = await reader.records.audit.after({ after, limit: PAGE })
    yield page
    if (page.length < PAGE) return
    after = page.at(-1)?.id ?? after
  }
}

async function* newestFirst(
  { reader, clock: { wall } }: { readonly reader: QueueReader; readonly clock: Clock },
  { limit = Infinity, before, recordedAfter, recordedBefore }: Options,
): AsyncGenerator<readonly AuditEntry[]> {
  const since = recordedAfter === undefined ? null : wall.queueTime(recordedAfter)
  const until = recordedBefore === undefined ? null : wall.queueTime(recordedBefore)
  const filter = { ...ANY_ENTRY, since, until }
  let left = limit
  for (let end: AuditId | null = before === undefined ? null : Math.min(before, Number.MAX_SAFE_INTEGER); left > 0;) {
    const size = Math.min(PAGE, left)
    const page: readonly AuditEntry[] = await reader.records.audit.before(filter, { before: end, limit: size })
    yield page
    if (page.length < size) return
    left -= page.length
    end = page.at(-1)?.id ?? end
  }
}

/** The records of a relay or of this queue, the last one first. */
export async function* lastRecords(
  { clock, ...source }: QueueSource,
  options: Pick<Options, 'limit' | 'before'>,
): AsyncGenerator<AuditEntryJson> {
  if (source.api !== null) return yield* recordsOf(source.api, options)
  for await (const page of newestFirst({ reader: source.reader, clock }, options))
    yield* page.map((record) => auditEntryJson(record, clock.wall))
}

async function print(shell: Shell, options: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const { limit, before, recordedAfter, recordedBefore } = options
  if (!isRange(recordedAfter, recordedBefore))
    throw new CommandError(EX.usage, '--recorded-before is not after --recorded-after: nothing was recorded then')
  const isWhole = [limit, before, recordedAfter, recordedBefore].every((one) => one === undefined)
  await withSource(shell, config, async ({ clock, ...source }) => {
    const write = (records: readonly AuditEntryJson[]) =>
      shell.stdout.write(records.map((record) => auditLine(record, options, clock)).join(''))
    if (source.api !== null) {
      const records: AuditEntryJson[] = []
      for await (const record of recordsOf(source.api, options)) records.push(record)
      return write(isWhole ? records.toReversed() : records)
    }
    for await (const page of isWhole ? oldestFirst(source.reader) : newestFirst({ reader: source.reader, clock }, options))
      await write(page.map((record) => auditEntryJson(record, clock.wall)))
  })
}

export function addAudit(program: Command, shell: Shell): void {
  subcommand(program, 'audit', 'print who changed the queue, when and how')
    .option('--limit <n>', 'at most so many actions, the last one first', countArgument)
    .option('--before <id>', 'actions before the one with this id, the last one first', countArgument)
    .option('--recorded-after <time>', `actions at this time or later, the last one first: ${NAMED_INSTANT}`, instantArgument)
    .option('--recorded-before <time>', `actions before this time, the last one first: ${NAMED_INSTANT}`, instantArgument)
    .addOption(new Option('--tsv', 'exact tab-separated values, without headings').conflicts('json'))
    .option('--json', 'one JSON object per action')
    .addHelpText(
      'after',
      `
Without --limit, --before and a range of times, the first action comes first. Each action has an id, which the commands of
deferd operation take.
--tsv has the columns time, user, action, arguments, changed messages; on a queue that several nodes share, the node too.

Examples:
  deferd audit --limit 20
  deferd audit --limit 20 --before 4711
  deferd audit --recorded-after 2026-11-28T00:00:00Z`,
    )
    .action((options: Options, command: Command) => print(shell, options, command))
}
