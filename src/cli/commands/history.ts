/** `deferd history list`: mail that has left the queue, the last one first. */
import { Option, type Command } from 'commander'
import { FINAL_STATES } from '../../mail/message.ts'
import { departures, type HistoryQuery } from '../../queries/departed-mail.ts'
import { historyHeadings, historyLine, historyValues } from '../render/history-line.ts'
import { jsonLine, plural } from '../../presentation/text.ts'
import { configOf, countArgument, durationArgument, instantArgument, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { formatInstant, isRange, NAMED_INSTANT } from '../../mail/message-times.ts'
import type { WallTime } from '../../system/clock.ts'
import { displayOf } from '../shell/display.ts'
import { queryOf } from '../queue-client/api-connection.ts'
import type { DepartedMessageJson } from '../../resources/departed-message-json.ts'
import { formatDuration } from '../../system/duration.ts'
import { type RelayApi, type Shell, withSource } from '../shell/shell.ts'

interface Options extends Omit<HistoryQuery, 'left_after' | 'left_before'> {
  readonly leftAfter?: WallTime
  readonly leftBefore?: WallTime
  readonly limit?: number
  readonly tsv?: true
  readonly json?: true
}

const PAGE = 500

/** The messages of a relay that match. */
async function* departedAt(api: RelayApi, { since, left_after: after, left_before: before, ...conditions }: HistoryQuery, limit?: number) {
  const query = queryOf({
    ...conditions,
    since: since === undefined ? undefined : formatDuration(since),
    left_after: after === undefined ? undefined : formatInstant(after),
    left_before: before === undefined ? undefined : formatInstant(before),
  })
  for await (const one of api.rows<DepartedMessageJson>(`/history${query}`, limit)) yield [one]
}

async function list(shell: Shell, options: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const { json, tsv, limit, sender, recipient, outcome, since, leftAfter, leftBefore } = options
  const query = { sender, recipient, outcome, since, left_after: leftAfter, left_before: leftBefore }
  if (!isRange(leftAfter, leftBefore)) throw new CommandError(EX.usage, '--left-before is not after --left-after: no message left then')
  const display = displayOf(shell)
  const isTable = json !== true && tsv !== true
  let count = 0
  await withSource(shell, config, async (source) => {
    const { clock } = source
    const pages =
      source.api === null ? departures(source, { ...query, limit }, { visible: null, size: PAGE }) : departedAt(source.api, query, limit)
    for await (const messages of pages) {
      if (isTable && count === 0 && messages.length > 0) await shell.stdout.write(`${historyHeadings(display)}\n`)
      count += messages.length
      const lines = messages.flatMap((one) => {
        if (json === true) return [jsonLine(one)]
        return one.recipients.map((to) => `${isTable ? historyLine(one, to, clock, display) : historyValues(one, to)}\n`)
      })
      await shell.stdout.write(lines.join(''))
    }
  })
  if (isTable) await shell.stdout.write(count === 0 ? 'No message in the history matches.\n' : `${plural(count, 'message')}\n`)
}

export function addHistory(program: Command, shell: Shell): void {
  const parent = program.command('history').description('list mail that has left the queue')
  subcommand(parent, 'list', 'list mail that has left the queue, the last one first')
    .option('--sender <address>', 'envelope sender; * stands for anything, <> for the null sender')
    .option('--recipient <address>', 'recipient; * stands for anything')
    .addOption(new Option('--outcome <name>', 'outcome of the recipient; removed: deleted or requeued').choices(FINAL_STATES))
    .option('--since <time>', 'left the queue less than this ago: 30m, 2h, 1d', durationArgument)
    .option('--left-after <time>', `left the queue at this time or later: ${NAMED_INSTANT}`, instantArgument)
    .option('--left-before <time>', `left the queue before this time: ${NAMED_INSTANT}`, instantArgument)
    .option('--limit <n>', 'at most so many messages', countArgument)
    .addOption(
      new Option('--tsv', 'exact tab-separated values, without headings: time, queue id, outcome, sender, recipient, reply').conflicts(
        'json',
      ),
    )
    .option('--json', 'one JSON object per message, with the recipients that match')
    .addHelpText(
      'after',
      `
A message leaves the queue when all its recipients have an outcome; deferd queue show ID prints all its attempts. The history
reaches back history_retention and history_limit.

Examples:
  deferd history list --recipient ann@example.com --since 2d
  deferd history list --left-before 2026-11-28T14:00:00Z --limit 20
  deferd history list --outcome bounced --since 1h --json`,
    )
    .action((options: Options, command: Command) => list(shell, options, command))
}
