/** `deferd history erase`: erases addresses of mail that has left the queue. The daemon does, as an operation. */
import type { Command } from 'commander'
import type { Config } from '../../../config/options.ts'
import { formatInstant, NAMED_INSTANT } from '../../../mail/message-times.ts'
import { instantOf, jsonLine, plural } from '../../../presentation/text.ts'
import type { EraseBody } from '../../../queries/operations/erase.ts'
import type { ErasurePlanJson } from '../../../resources/plans/erasure-plan-json.ts'
import type { WallTime } from '../../../system/clock.ts'
import { configOf, instantArgument, subcommand } from '../../shell/config-options.ts'
import { agrees } from '../../shell/confirmation.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { followed } from '../../shell/followed-operation.ts'
import type { Shell } from '../../shell/shell.ts'

interface Options {
  readonly recipient?: string
  readonly sender?: string
  readonly before?: WallTime
  readonly reason?: string
  readonly dryRun?: true
  readonly yes?: true
  readonly json?: true
}

/** Throws CommandError (64) unless one side is given. */
function orderOf({ recipient, sender, before, reason }: Options): EraseBody {
  if ((recipient === undefined) === (sender === undefined)) throw new CommandError(EX.usage, 'give either --recipient or --sender')
  return { recipient, sender, before: before === undefined ? undefined : formatInstant(before), reason }
}

function planText({ messages, rows, live_messages: live }: ErasurePlanJson): string {
  const lines = [
    ...rows.map(({ table, rows: number }) => `${table}: ${plural(number, 'row')}`),
    ...(live === 0
      ? []
      : [`${plural(live, 'message')} of such addresses in the queue and the trash: not changed, deferd queue delete removes them`]),
    `${plural(messages, 'message')} of the history would be changed; this cannot be undone`,
  ]
  return lines.map((line) => `${line}\n`).join('')
}

async function erase(shell: Shell, config: Config, order: EraseBody, { dryRun, yes, json }: Options): Promise<void> {
  const client = await shell.openQueueClient(config)
  const who = shell.user
  try {
    const isAsked = yes !== true && shell.stdout.columns !== null
    const plan = dryRun === true || isAsked ? await client.planErasure(order, who) : null
    if (plan !== null && json !== true) await shell.stdout.write(planText(plan))
    if (dryRun === true) return json === true ? await shell.stdout.write(jsonLine({ operation: 'erase', dry_run: true, plan })) : undefined
    if (isAsked && plan !== null && !(await agrees(shell, `erase the addresses of ${plural(plan.messages, 'message')} for ever?`)))
      return await shell.stdout.write('Nothing was changed.\n')
    // Mail that leaves the queue while the operator decides stays as it is.
    const pinned = plan === null ? order : { ...order, before: formatInstant(instantOf(plan.before)) }
    const begun = await client.erase(pinned, who)
    const { id, state, changed, error } = await followed(shell, client, begun, { doing: 'erasing', total: plan?.messages ?? null })
    if (json === true) await shell.stdout.write(jsonLine({ operation: 'erase', id, state, changed, error }))
    if (state !== 'done') throw new CommandError(EX.temporary, `operation ${id} is ${state}${error === null ? '' : `: ${error}`}`)
    if (json !== true) await shell.stdout.write(`addresses of ${plural(changed, 'message')} of the history erased by operation ${id}\n`)
  } finally {
    await client.close()
  }
}

export function addErase(parent: Command, shell: Shell): void {
  subcommand(parent, 'erase', 'erase addresses of mail that has left the queue')
    .option('--recipient <address>', 'addresses of recipients; * stands for anything')
    .option('--sender <address>', 'envelope senders; * stands for anything')
    .option('--before <time>', `mail that left the queue before this time: ${NAMED_INSTANT}`, instantArgument)
    .option('--reason <text>', 'reason, for the audit log')
    .option('--dry-run', 'show what would be changed, and change nothing')
    .option('--yes', 'do not ask for confirmation')
    .option('--json', 'print the plan or the outcome as a JSON object')
    .addHelpText(
      'after',
      `
Each address becomes a text such as erased-1f0c9a3b, equal for equal addresses,
in all that the queue keeps of mail that has left: history and its search,
dialogues, events, audit log. Kept contents of such mail are deleted, and
subjects erased. Counts and times stay. Mail in the queue and in the trash stays
as it is: delete it first. Backups, log files and dead rows of PostgreSQL are not
changed, see docs/erasure.md. It cannot be undone. When the daemon stops, it goes
on after its next start. The daemon must run.

Examples:
  deferd history erase --recipient anna@example.com --dry-run
  deferd history erase --recipient anna@example.com --reason "request of 2026-11-29"
  deferd history erase --sender "*@former-customer.example" --before 2026-01-01T00:00:00Z`,
    )
    .action(async (options: Options, command: Command) => {
      const { config } = await configOf(shell, command)
      await erase(shell, config, orderOf(options), options)
    })
}
