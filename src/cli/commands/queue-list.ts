/**
 * `deferd queue list`: one line per message. On a terminal in columns and for people; elsewhere separated by tabs and
 * exact; with --json for programs.
 */
import type { Command } from 'commander'
import { configOf, subcommand } from '../command.ts'
import { toFilter, withFilters, type FilterOptions } from '../filters.ts'
import { headings } from '../listed-line.ts'
import { listing } from '../listing.ts'
import type { Shell } from '../shell.ts'
import { plural } from '../text.ts'

export async function printList(shell: Shell, command: Command, options: FilterOptions & { readonly json?: true }): Promise<void> {
  const { config } = await configOf(shell, command)
  const now = shell.clock.now()
  const { columns } = shell.stdout
  const forPeople = options.json !== true && columns !== null
  const reader = await shell.openReader(config)
  try {
    let count = 0
    const order = { filter: toFilter(options, now), now, limit: options.limit, json: options.json === true, columns }
    for await (const share of listing(reader, config.queue_directory, order)) {
      if (count === 0 && forPeople) await shell.stdout.write(`${headings(columns)}\n`)
      count += share.count
      await shell.stdout.write(share.lines)
    }
    if (forPeople) await shell.stdout.write(count === 0 ? 'No message in the queue matches.\n' : `${plural(count, 'message')}\n`)
  } finally {
    reader.close()
  }
}

export function addQueueList(parent: Command, shell: Shell): void {
  withFilters(subcommand(parent, 'list', 'list messages, one per line'), ['incoming', 'active', 'deferred', 'hold', 'corrupt', 'trash'])
    .option('--json', 'one JSON object per line: the members of `postqueue -j`, and more')
    .addHelpText(
      'after',
      `
Examples:
  deferd queue list
  deferd queue list --destination gmail.com --older-than 2h
  deferd queue list --reply "greylisted" --json | jq .queue_id`,
    )
    .action((options: FilterOptions & { readonly json?: true }, command: Command) => printList(shell, command, options))
}
