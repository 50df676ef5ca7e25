/** `deferd suppression`: lists, shows, adds, removes, imports and exports addresses that senders are refused. */
import { Option, type Command } from 'commander'
import { ALL_SENDERS, OPERATOR_REASONS, SUPPRESSION_REASONS } from '../../../store/records/suppression-entry.ts'
import { countArgument, durationArgument, subcommand } from '../../shell/config-options.ts'
import type { Shell } from '../../shell/shell.ts'
import { add, importFile, remove, resume, type AddOptions } from './suppression-change.ts'
import type { FilterOptions } from './suppression-filter.ts'
import { exportAll, list, show } from './suppression-list.ts'

const reasonOption = (): Option => new Option('--reason <reason>', 'reason of the entry').choices(SUPPRESSION_REASONS)

const withFilter = (command: Command): Command =>
  command
    .option('--scope <domain>', 'sender domain; * for the entries that concern all senders')
    .addOption(reasonOption())
    .option('--destination <name>', 'destination whose replies listed the address')
    .option('--since <time>', 'listed less long ago than this: 30m, 2h, 1d', durationArgument)

export function addSuppression(program: Command, shell: Shell): void {
  const parent = program.command('suppression').description('list, add and remove addresses that senders are refused')
  withFilter(subcommand(parent, 'list', 'list the addresses'))
    .option('--address <address>', 'address, or @domain')
    .option('--limit <n>', 'at most so many entries', countArgument)
    .option('--json', 'one JSON object per entry')
    .action((options: FilterOptions & { limit?: number; json?: true }, command: Command) => list(shell, options, command))
  subcommand(parent, 'show <address>', 'show why and since when an address is refused, in all scopes')
    .option('--json', 'one JSON object per entry')
    .action((address: string, options: { json?: true }, command: Command) => show(shell, address, options, command))
  subcommand(parent, 'add <address>', 'refuse an address, or all of @domain, in place of its entry')
    .option('--scope <domain>', 'sender domain; * for all senders', ALL_SENDERS)
    .addOption(new Option('--reason <reason>', 'reason of the entry').choices(OPERATOR_REASONS).default('manual'))
    .option('--text <text>', 'text that the refusal quotes')
    .option('--for <time>', 'end the entry after this time: 2h, 30d', durationArgument)
    .addHelpText(
      'after',
      `
With suppression = yes, RCPT gets 550 5.1.1 from the next one on, at all nodes of a shared queue within a second. Mail that was accepted
before is still delivered. docs/suppression.md has the rules.

Example:
  deferd suppression add bob@example.net --scope news.example.com --reason unsubscribe`,
    )
    .action((address: string, options: AddOptions, command: Command) => add(shell, address, options, command))
  withFilter(subcommand(parent, 'remove [address...]', 'remove addresses, or all entries that match'))
    .option('--all', 'remove all entries')
    .option('--dry-run', 'show what would be removed')
    .addHelpText(
      'after',
      `
Example, to undo what a fault of a destination has listed:
  deferd suppression remove --since 2h --reason bounce --destination example.net --dry-run`,
    )
    .action((addresses: readonly string[], options: FilterOptions & { dryRun?: true; all?: true }, command: Command) =>
      remove(shell, addresses, options, command),
    )
  subcommand(parent, 'import <file>', 'add the addresses of a file (- for standard input), all or none')
    .option('--scope <domain>', 'scope of lines that name none', ALL_SENDERS)
    .option('--dry-run', 'check the lines, and import nothing')
    .addHelpText(
      'after',
      `
Each line is an address or @domain; or the file is CSV with a heading that has address and may have scope, reason, text and expire_time.
Every line that cannot be used is printed with its number.`,
    )
    .action((file: string, options: { scope: string; dryRun?: true }, command: Command) => importFile(shell, file, options, command))
  withFilter(subcommand(parent, 'export', 'print the addresses in the form that import reads'))
    .addOption(new Option('--format <format>', 'form of the output').choices(['csv', 'json']).default('csv'))
    .action((options: FilterOptions & { format: 'csv' | 'json' }, command: Command) => exportAll(shell, options, command))
  subcommand(parent, 'resume <domain>', 'list addresses of a sender domain again, after too many were listed within an hour').action(
    (scope: string, _options: unknown, command: Command) => resume(shell, scope, command),
  )
}
