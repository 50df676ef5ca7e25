/** `deferd oauth`: the `[oauth.NAME]` tables, from which next hops get access tokens. */
import type { Command } from 'commander'
import { subcommand } from '../shell/config-options.ts'
import type { Shell } from '../shell/shell.ts'
import { hopArgument, testTable, type TestOptions } from './oauth-test.ts'
import { listTables, showTable } from './oauth-list.ts'
import { logIn, type LoginOptions } from './oauth-login.ts'

interface JsonOption {
  readonly json?: true
}

export function addOauth(program: Command, shell: Shell, end: (code: number) => void): void {
  const parent = program.command('oauth').description('the sources of access tokens for next hops ([oauth.NAME])')
  subcommand(parent, 'list', 'list the tables, what uses them, and the tokens of the running daemon')
    .option('--json', 'one JSON object per table')
    .action((options: JsonOption, command: Command) => listTables(shell, options, command))
  subcommand(parent, 'show', 'print the settings of a table, without secrets')
    .argument('<name>', 'name of the table')
    .option('--json', 'one JSON object')
    .action((name: string, options: JsonOption, command: Command) => showTable(shell, name, options, command))
  subcommand(parent, 'test', 'get a token, and log in with it at the next hops that use the table, without sending mail')
    .argument('<name>', 'name of the table')
    .argument('[user]', 'user of the login (default: those of smtp_sasl_password_maps)')
    .option('--hop <nexthop>', 'next hop, such as [smtp.office365.com]:587 (default: those of the configuration)', hopArgument)
    .option('--json', 'one JSON object per login')
    .addHelpText(
      'after',
      `
Shows what the token says about itself, which is not verified, and never the token. What is missing is named, with what to do. The right of an
application to the mailbox shows at the login, or with the first mail. Exit code 0 when the login works, 65 for an unknown table, 69 when a next hop
fails, 75 when the authority gives no answer, 77 when a permission is missing, 78 when the table, its secret, its login or the clock is wrong.

Examples:
  deferd oauth test m365
  deferd oauth test m365 relay@contoso.example --hop [smtp.office365.com]:587`,
    )
    .action((name: string, user: string | undefined, options: TestOptions, command: Command) =>
      testTable(shell, { name, user, options, end }, command),
    )
  subcommand(parent, 'login', 'log a person in by a device code, and write the refresh token to refresh_token_file')
    .argument('<name>', 'name of a table with grant = "refresh_token"')
    .option('--user <user>', 'person who has to log in; a login of another one is refused')
    .addHelpText(
      'after',
      `
Prints the address of a page and a code for it, and waits until the person has entered the code and logged in (RFC 8628). A running daemon then uses the
token at once. Exit code 75 when the code has expired, 77 when the person declined.

Example:
  deferd oauth login m365 --user relay@contoso.example`,
    )
    .action((name: string, options: LoginOptions, command: Command) => logIn(shell, name, options, command))
}
