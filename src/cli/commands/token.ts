/** `deferd token`: manages the tokens with which programs use the admin API. The secret of a token is printed once, and never stored. */
import { InvalidArgumentError, Option, type Command } from 'commander'
import { isTokenName } from '../../admin/token-changes.ts'
import type { Config } from '../../config/options.ts'
import { CLIENT_ROLES, type ClientRole } from '../../http/requests/requester.ts'
import type { Clock, Duration } from '../../system/clock.ts'
import { accessTokens } from '../../queries/records/kept-records.ts'
import type { AccessTokenJson } from '../../resources/access-token-json.ts'
import { instantOf, jsonLine, localTime, maskControls } from '../../presentation/text.ts'
import { configOf, durationArgument, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import { resourceOf, withSource, type Shell } from '../shell/shell.ts'

interface AddOptions {
  readonly role: ClientRole
  readonly content?: true
  readonly destination?: string
  readonly expires?: Duration
}

async function withClient<T>(shell: Shell, config: Config, work: (client: QueueClient) => Promise<T>): Promise<T> {
  const client = await shell.openQueueClient(config)
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

async function add(shell: Shell, name: string, options: AddOptions, command: Command): Promise<void> {
  const { role, content = false, destination, expires = null } = options
  if (!isTokenName(name)) throw new CommandError(EX.usage, 'invalid name of a token: use 1 to 64 letters, digits or any of ._@+-')
  if (expires !== null && expires <= 0) throw new CommandError(EX.usage, '--expires must be longer than 0')
  const { config } = await configOf(shell, command)
  const secret = await withClient(shell, config, (client) =>
    client.addToken({
      name,
      role,
      content,
      destinations: destination?.toLowerCase() ?? null,
      duration: expires,
      who: shell.user,
    }),
  )
  await shell.stdout.write(`${secret}\n`)
  await shell.stderr.write(`deferd: this is the only time that the token ${name} is shown; send it as Authorization: Bearer TOKEN\n`)
}

async function remove(shell: Shell, name: string, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withClient(shell, config, (client) => client.removeToken({ name, who: shell.user }))
  await shell.stdout.write(`${maskControls(name)}: removed\n`)
}

/** A token as one line: name, role with its restrictions, last use, end. */
function lineOf(token: AccessTokenJson, clock: Clock): string {
  const { name, role, content, destinations, added_time: added, added_by: by, expire_time: expires, last_used_time: lastUsed } = token
  const local = (seconds: number): string => localTime(instantOf(seconds), clock)
  const facts = [
    `${role}${content ? ' with content' : ''}${destinations === null ? '' : `, destinations ${destinations}`}`,
    `added ${local(added)} by ${by}`,
    // Uses are recorded to the hour.
    lastUsed === null ? 'never used' : `last used in the hour from ${local(lastUsed)}`,
    ...(expires === null ? [] : [`${instantOf(expires) <= clock.wall.now() ? 'expired' : 'expires'} ${local(expires)}`]),
  ]
  return `${maskControls(`${name}: ${facts.join('; ')}`)}\n`
}

async function list(shell: Shell, { json }: { readonly json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const { tokens } = await resourceOf(source, '/tokens', accessTokens)
    await shell.stdout.write(tokens.map((token) => (json === true ? jsonLine(token) : lineOf(token, source.clock))).join(''))
  })
}

/** Refuses a second pattern, which would take the place of the first one. */
function onePattern(pattern: string, former: string | undefined): string {
  if (former !== undefined) throw new InvalidArgumentError('A token has one pattern, such as *.example.org; add a token for each.')
  return pattern
}

export function addToken(program: Command, shell: Shell): void {
  const parent = program.command('token').description('manage the tokens of programs that use the admin API')
  subcommand(parent, 'add <name>', 'add a token, and print it once')
    .addOption(
      new Option('--role <role>', 'viewer reads; operator also acts on mail; sender only submits mail; admin does everything')
        .choices(CLIENT_ROLES)
        .makeOptionMandatory(),
    )
    .option('--content', 'also header and body of messages; the role admin may always read them')
    .option('--destination <pattern>', 'only mail of these destinations; * matches any text', onePattern)
    .option('--expires <time>', 'time after which the token is refused: 12h, 90d (default: never)', durationArgument)
    .addHelpText(
      'after',
      `
The token is printed on standard output; only a hash of it is stored. It has effect at once, on all nodes of a shared queue.

Examples:
  deferd token add grafana --role viewer --expires 90d
  deferd token add ci --role sender > ci.token`,
    )
    .action((name: string, options: AddOptions, command: Command) => add(shell, name, options, command))
  subcommand(parent, 'list', 'list tokens, with their rights and their last use')
    .option('--json', 'one JSON object per token')
    .action((options: { readonly json?: true }, command: Command) => list(shell, options, command))
  subcommand(parent, 'remove <name>', 'remove a token, which is refused from then on').action(
    (name: string, _options: unknown, command: Command) => remove(shell, name, command),
  )
}
