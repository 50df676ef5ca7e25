/** `deferd operation`: lists, cancels and undoes operations on many messages, by the ids that `deferd audit` shows. */
import { InvalidArgumentError, type Command } from 'commander'
import type { Config } from '../../../config/options.ts'
import type { AuditId } from '../../../store/records/audit-log.ts'
import { operationJson, type AuditEntryJson, type OperationJson } from '../../../resources/operation-json.ts'
import { grouped, instantOf, jsonLine, localTime, plural, relative } from '../../../presentation/text.ts'
import { configOf, countArgument, subcommand } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { countText, ProgressLine } from '../../shell/progress.ts'
import { isConfirmed } from '../../shell/confirmation.ts'
import { lastRecords } from './audit.ts'
import { displayOf } from '../../shell/display.ts'
import { tableHeading, tableRow } from '../../render/table.ts'
import type { WallTime } from '../../../system/clock.ts'
import { MESSAGE_OPERATIONS } from '../../../queue/operation-request.ts'
import type { QueueClient } from '../../shell/queue-client.ts'
import { resourceOf, withSource, type Shell } from '../../shell/shell.ts'

interface ListOptions {
  readonly limit: number
  readonly json?: true
}

const LIMIT = 20
const HEADINGS = ['ID', 'TIME', 'STATE', 'CHANGED', 'UNDO', 'WHO', 'OPERATION']

/** Until when the operation can be undone; `-` for never. */
function undoText({ undone_by: undoneBy, undo_until: until }: OperationJson, now: WallTime): string {
  if (undoneBy !== null) return `by ${undoneBy}`
  return until === null || instantOf(until) <= now ? '-' : relative(instantOf(until), now)
}

const isOperation = ({ action }: AuditEntryJson): boolean => MESSAGE_OPERATIONS.some((name) => name === action)

/** The last operations on messages, the newest first. */
async function list(shell: Shell, { limit, json }: ListOptions, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const found: OperationJson[] = []
    for await (const record of lastRecords(source, {})) {
      if (!isOperation(record)) continue
      const { action: operation, ...rest } = record
      found.push({ operation, ...rest })
      if (found.length >= limit) break
    }
    if (json === true) return shell.stdout.write(found.map(jsonLine).join(''))
    if (found.length === 0) return shell.stdout.write('No operation on messages is in the audit log.\n')
    const now = source.clock.wall.now()
    const rows = found.map((one) => [
      String(one.id),
      localTime(instantOf(one.time), source.clock),
      one.state,
      grouped(one.changed),
      undoText(one, now),
      one.who,
      `${one.operation} ${one.arguments}`.trim(),
    ])
    const columns = HEADINGS.map((heading, i) => {
      const width = Math.max(heading.length, ...rows.map((row) => row[i]?.length ?? 0))
      return { heading, width, ...(heading === 'ID' || heading === 'CHANGED' ? { align: 'right' as const } : {}) }
    })
    const display = displayOf(shell)
    const lines = [tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))]
    await shell.stdout.write(lines.map((line) => `${line}\n`).join(''))
  })
}

interface Options {
  readonly yes?: true
  readonly reason?: string
  readonly json?: true
}

function idArgument(text: string): AuditId {
  const id = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(id) && id > 0) return id
  throw new InvalidArgumentError('Expected the id of an operation: deferd audit shows it.')
}

/** Throws CommandError (65) for an unknown id. */
const operationOf = (shell: Shell, config: Config, id: AuditId): Promise<OperationJson> =>
  withSource(shell, config, (source) =>
    resourceOf(source, `/operations/${id}`, async ({ reader, clock }) => {
      const entry = await reader.records.audit.one(id)
      if (entry === undefined) throw new CommandError(EX.data, `there is no operation ${id}: deferd audit shows the ids`)
      return operationJson(entry, clock.wall)
    }),
  )

async function withClient<T>(shell: Shell, config: Config, work: (client: QueueClient) => Promise<T>): Promise<T> {
  const client = await shell.openQueueClient(config)
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

async function cancel(shell: Shell, id: AuditId, { json }: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await operationOf(shell, config, id)
  const outcome = await withClient(shell, config, (client) => client.cancel(id, shell.user))
  const entry = await operationOf(shell, config, id)
  const { state, changed } = entry
  if (outcome !== 'cancelled') throw new CommandError(EX.data, `operation ${id} has ended: it is ${state}; changed messages: ${changed}`)
  await shell.stdout.write(
    json === true
      ? jsonLine(entry)
      : `operation ${id} is cancelled; ${plural(changed, 'message')} changed: deferd operation undo ${id} changes them back\n`,
  )
}

async function undo(shell: Shell, id: AuditId, { reason, json, yes }: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const undone = await operationOf(shell, config, id)
  if (!(await isConfirmed(shell, 'undo', { matched: undone.changed, yes: yes === true }))) return
  const line = new ProgressLine(shell.stderr, shell.clock)
  const request = { operation: id, who: shell.user, reason: reason ?? null }
  const summary = await withClient(shell, config, async (client) => {
    try {
      return await client.undo(request, ({ matched }) => line.show(countText('undoing', matched, undone.changed)))
    } finally {
      await line.finish()
    }
  })
  if (json === true) return shell.stdout.write(jsonLine(await operationOf(shell, config, summary.id)))
  const of = undone.changed > summary.changed ? ` of ${grouped(undone.changed)}` : ''
  await shell.stdout.write(
    `operation ${id} is undone by operation ${summary.id}: ${plural(summary.changed, 'message')}${of} changed back\n`,
  )
}

export function addOperation(program: Command, shell: Shell): void {
  const parent = program.command('operation').description('list, cancel or undo operations on many messages')
  subcommand(parent, 'list', 'list the last operations on messages, the newest first, with their ids')
    .option('--limit <n>', 'at most so many operations', countArgument, LIMIT)
    .option('--json', 'one JSON object per operation')
    .addHelpText('after', '\nUNDO is the time left for deferd operation undo ID, or the id of the undo.')
    .action((options: ListOptions, command: Command) => list(shell, options, command))
  subcommand(parent, 'cancel', 'end a running operation; messages that it has changed stay changed')
    .argument('<id>', 'id of the operation, as in deferd audit', idArgument)
    .option('--json', 'print the operation as a JSON object')
    .addHelpText(
      'after',
      `
The operation ends after the round of messages that is being changed. On a queue that several nodes share, any node may run it.

Examples:
  deferd audit --limit 5
  deferd operation cancel 4711`,
    )
    .action((id: AuditId, options: Options, command: Command) => cancel(shell, id, options, command))
  subcommand(parent, 'undo', 'change the messages of an operation back')
    .argument('<id>', 'id of the operation, as in deferd audit', idArgument)
    .option('--reason <text>', 'reason, for the audit log')
    .option('--yes', 'do not ask for confirmation')
    .option('--json', 'print the undo, which is an operation too, as a JSON object')
    .addHelpText(
      'after',
      `
Delete and restore, and hold and release undo each other. Exactly those messages are changed that the operation has changed and that no
later operation has placed elsewhere. Deleted mail can be restored for trash_lifetime; other operations can be undone for
history_retention. Flush, requeue, expire and delete --now cannot be undone. An undo can be undone.

Examples:
  deferd operation undo 4711
  deferd operation undo 4711 --reason 'wrong sender'`,
    )
    .action((id: AuditId, options: Options, command: Command) => undo(shell, id, options, command))
}
