/** `deferd history list`: mail that has left the queue, the last one first. */
import { Option, type Command } from 'commander'
import { departures, type HistoryQuery } from '../../../queries/departed-mail.ts'
import { historyHeadings, historyLine, historyValues } from '../../render/history-line.ts'
import { jsonLine, plural } from '../../../presentation/text.ts'
import { configOf, countArgument, subcommand } from '../../shell/config-options.ts'
import { historyQueryOf, requestedHistory, withHistoryFilter, type FilterOptions } from './history-filter.ts'
import { addErase } from './history-erase.ts'
import { addResend } from './history-resend.ts'
import { displayOf } from '../../shell/display.ts'
import { queryOf } from '../../queue-client/api-connection.ts'
import type { DepartedMessageJson } from '../../../resources/departed-message-json.ts'
import { type RelayApi, type Shell, withSource } from '../../shell/shell.ts'

interface Options extends FilterOptions {
  readonly limit?: number
  readonly tsv?: true
  readonly json?: true
}

const PAGE = 500

/** The messages of a relay that match. */
async function* departedAt(api: RelayApi, query: HistoryQuery, limit?: number) {
  for await (const one of api.rows<DepartedMessageJson>(`/history${queryOf(requestedHistory(query))}`, limit)) yield [one]
}

async function list(shell: Shell, options: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const { json, tsv, limit } = options
  const query = historyQueryOf(options)
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
  const parent = program.command('history').description('list mail that has left the queue, send it again, or erase its addresses')
  withHistoryFilter(subcommand(parent, 'list', 'list mail that has left the queue, the last one first'))
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
  addResend(parent, shell)
  addErase(parent, shell)
}
