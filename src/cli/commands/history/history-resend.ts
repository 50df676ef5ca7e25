/** `deferd history resend`: sends mail of the history again to the recipients that it did not reach. The daemon does, as an operation. */
import type { Command } from 'commander'
import type { Config } from '../../../config/options.ts'
import { formatInstant } from '../../../mail/message-times.ts'
import { grouped, instantOf, jsonLine, maskControls, plural } from '../../../presentation/text.ts'
import type { ResendBody } from '../../../queries/operations/resend.ts'
import type { DepartedMessageJson } from '../../../resources/departed-message-json.ts'
import type { ResendPlanJson } from '../../../resources/plans/resend-plan-json.ts'
import { clockOf } from '../../../system/queue-clock.ts'
import { historyHeadings, historyLine } from '../../render/history-line.ts'
import { configOf, subcommand } from '../../shell/config-options.ts'
import { isConfirmed } from '../../shell/confirmation.ts'
import { displayOf } from '../../shell/display.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { followed } from '../../shell/followed-operation.ts'
import type { Shell } from '../../shell/shell.ts'
import { historyQueryOf, requestedHistory, withHistoryFilter, type FilterOptions } from './history-filter.ts'

interface Options extends FilterOptions {
  readonly again?: true
  readonly rate?: string
  readonly reason?: string
  readonly dryRun?: true
  readonly yes?: true
  readonly json?: true
}

/** Throws CommandError (64) unless either ids or filters are given. */
function orderOf(ids: readonly string[], options: Options): ResendBody {
  const { again, rate, reason } = options
  const filter = Object.fromEntries(Object.entries(requestedHistory(historyQueryOf(options))).filter(([, value]) => value !== undefined))
  const isFiltered = Object.keys(filter).length > 0
  if (ids.length > 0 && isFiltered) throw new CommandError(EX.usage, 'give either queue ids or filters, not both')
  if (ids.length === 0 && !isFiltered) throw new CommandError(EX.usage, 'no messages selected: give queue ids or filters')
  return { ...(ids.length > 0 ? { ids: [...ids] } : { filter }), again, rate, reason }
}

const planText = ({ messages, recipients, bytes }: ResendPlanJson): string =>
  `${plural(messages, 'message')} would be sent again to ${plural(recipients, 'failed recipient')} (${grouped(bytes)} bytes)`

/** Lines that name the recipients on the suppression list. */
function suppressedLines({ left_out: leftOut, sent, examples }: ResendPlanJson['suppressed']): readonly string[] {
  return [
    ...(leftOut === 0 ? [] : [`left out, on the suppression list: ${grouped(leftOut)} (deferd suppression remove ends an entry)`]),
    ...(sent === 0 ? [] : [`on the suppression list, and sent to all the same (suppression = warn): ${grouped(sent)}`]),
    ...examples.map(({ recipient, text }) => maskControls(`  ${recipient}: ${text}`)),
  ]
}

const beforeText = (again: boolean): string =>
  again ? 'another of the messages is for the same recipients' : '--again sends to them once more'

/** Lines that name the recipients that are left out. */
const leftOutLines = (
  { sent_before: before, without_content: without, requeued, suppressed, unknown }: ResendPlanJson,
  again: boolean,
): readonly string[] => [
  ...(before === 0 ? [] : [`left out, sent again before: ${grouped(before)} (${beforeText(again)})`]),
  ...(without === 0 ? [] : [`left out, content not kept (returned_content_retention): ${grouped(without)}`]),
  ...(requeued === 0 ? [] : [`left out, content went on with the other recipients, which were requeued: ${grouped(requeued)}`]),
  ...suppressedLines(suppressed),
  ...(unknown.length === 0 ? [] : [`ids that the history does not have: ${grouped(unknown.length)}`]),
]

async function showPlan(shell: Shell, plan: ResendPlanJson, again: boolean): Promise<void> {
  const display = displayOf(shell)
  const clock = clockOf(null, shell.clock)
  const rows = (one: DepartedMessageJson): readonly string[] => one.recipients.map((to) => historyLine(one, to, clock, display))
  const { examples, destinations } = plan
  const lines = [
    ...(examples.length === 0 ? [] : [historyHeadings(display), ...examples.flatMap(rows)]),
    ...destinations.map((one) => `${one.destination}: ${plural(one.recipients, 'recipient')}`),
    ...leftOutLines(plan, again),
    `${planText(plan)}; nothing was changed`,
  ]
  await shell.stdout.write(lines.map((line) => `${line}\n`).join(''))
}

/** Throws CommandError (65) when the history does not have an id, as operations on the queue do. */
function assertKnown({ unknown }: ResendPlanJson): void {
  const [first, ...others] = unknown
  if (first === undefined) return
  const more = others.length > 0 ? ` and ${grouped(others.length)} more` : ''
  throw new CommandError(EX.data, `no such message in the history: ${maskControls(first)}${more}`)
}

/** The order for what the plan selected: without mail that leaves the queue while the operator decides. */
function pinned({ filter, ...order }: ResendBody, plan: ResendPlanJson): ResendBody {
  if (filter === undefined || filter.left_before !== undefined) return { ...order, filter }
  return { ...order, filter: { ...filter, left_before: formatInstant(instantOf(plan.left_before)) } }
}

async function resend(shell: Shell, config: Config, order: ResendBody, { dryRun, yes, json }: Options): Promise<void> {
  const client = await shell.openQueueClient(config)
  const who = shell.user
  try {
    const isAsked = yes !== true && shell.stdout.columns !== null
    const plan = dryRun === true || isAsked ? await client.planResending(order, who) : null
    if (dryRun === true && plan !== null) {
      await (json === true
        ? shell.stdout.write(jsonLine({ operation: 'resend', dry_run: true, plan }))
        : showPlan(shell, plan, order.again === true))
      return assertKnown(plan)
    }
    if (!(await isConfirmed(shell, 'send again', { matched: plan?.messages ?? null, yes: yes === true }))) {
      return await shell.stdout.write('Nothing was changed.\n')
    }
    const begun = await client.resend(plan === null ? order : pinned(order, plan), who)
    const { id, state, changed, error } = await followed(shell, client, begun, { doing: 'sending again', total: plan?.messages ?? null })
    if (json === true) await shell.stdout.write(jsonLine({ operation: 'resend', id, state, changed, error }))
    if (state !== 'done') {
      const text = `operation ${id} is ${state} after ${plural(changed, 'message')}${error === null ? '' : `: ${error}`}`
      throw new CommandError(EX.temporary, `${text}; the same command sends the others`)
    }
    if (json !== true) await shell.stdout.write(`${plural(changed, 'message')} sent again by operation ${id}\n`)
  } finally {
    await client.close()
  }
}

export function addResend(parent: Command, shell: Shell): void {
  withHistoryFilter(subcommand(parent, 'resend [id...]', 'send mail again to the recipients that it did not reach'))
    .option('--again', 'also to recipients that were sent again before')
    .option('--rate <n/time>', 'at most so many messages in a time: 100/min')
    .option('--reason <text>', 'reason, for the audit log')
    .option('--dry-run', 'show what would be sent, and change nothing')
    .option('--yes', 'do not ask for confirmation')
    .option('--json', 'print the plan or the outcome as a JSON object')
    .addHelpText(
      'after',
      `
A new message with a new queue id and a new lifetime goes to the failed recipients of a message alone, each of them once: a second
resend leaves them out. Delivered recipients get nothing. Routing and aliases are not applied again; DKIM signs anew. The content must be
kept: set returned_content_retention before. With suppression = yes, recipients on the suppression list are left out. The limits of the queue hold: above them the operation ends, and the command can be
repeated. The daemon must run.

Examples:
  deferd history resend --status 5.7.1 --since 2h --dry-run
  deferd history resend --status 5.7.1 --since 2h --rate 100/min --reason "rule of example.net repaired"
  deferd history resend 4SVLCh0sf8z7Qhl`,
    )
    .action(async (ids: readonly string[], options: Options, command: Command) => {
      const { config } = await configOf(shell, command)
      await resend(shell, config, orderOf(ids, options), options)
    })
}
