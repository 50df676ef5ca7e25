/** `deferd operation`: cancels and undoes operations on many messages, by the ids that `deferd audit` shows. */
import { InvalidArgumentError, type Command } from 'commander'
import type { Config } from '../../../config/options.ts'
import type { AuditId } from '../../../store/audit-log.ts'
import { operationJson, type OperationJson } from '../../../resources/operation-json.ts'
import { grouped, jsonLine, plural } from '../../../presentation/text.ts'
import { configOf, subcommand } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { countText, ProgressLine } from '../../shell/progress.ts'
import type { QueueClient } from '../../shell/queue-client.ts'
import { resourceOf, withSource, type Shell } from '../../shell/shell.ts'

interface Options {
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
      const entry = await reader.operation(id)
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

async function undo(shell: Shell, id: AuditId, { reason, json }: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const undone = await operationOf(shell, config, id)
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
  const parent = program.command('operation').description('cancel or undo operations on many messages')
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
