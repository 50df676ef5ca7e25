/** `deferd retry`: repeats a command under a retry policy (`try for 1 hour … forany server in …` of D. Thain's fault tolerant shell). */
import { Option, type Command } from 'commander'
import { attempts, type Limit } from '../../backoff/attempts.ts'
import { PolicyError } from '../../backoff/policy.ts'
import { limitOf } from '../../backoff/retry.ts'
import { compileAlone, type RetryPolicy } from '../../backoff/retry-policy.ts'
import { maskControls } from '../../presentation/text.ts'
import type { Duration } from '../../system/clock.ts'
import { formatDuration } from '../../system/duration.ts'
import { countArgument, durationArgument } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'

interface Options {
  readonly policy: string
  readonly for?: Duration
  readonly attempts?: number
  readonly anyOf?: string
  readonly plan?: true
}

/** Waits of the fault tolerant shell: from a second to an hour, each up to doubled by chance. */
const DEFAULT_POLICY = 'thain(T=1s,F=2,M=1h)'

/** Number of attempts that --plan prints. */
const MOST_PLANNED = 1_000

/** Policy and limit. Throws CommandError (64). */
function checked({ policy: text, for: within = Infinity, attempts: tries = Infinity }: Options): {
  readonly policy: RetryPolicy
  readonly limit: Limit
} {
  try {
    if (within <= 0) throw new PolicyError('--for must be longer than 0')
    if (tries < 1) throw new PolicyError('--attempts must be at least 1')
    const policy = compileAlone(text)
    return { policy, limit: limitOf(policy, { within, tries }) }
  } catch (cause) {
    if (!(cause instanceof PolicyError)) throw cause
    const remedy = within === Infinity && tries === Infinity && / never ends: /.test(cause.message)
    const why = remedy ? `the policy ${text} never ends: give --for TIME, --attempts N or both` : cause.message
    throw new CommandError(EX.usage, maskControls(why), { cause })
  }
}

function serversOf(anyOf: string | undefined): readonly string[] | null {
  if (anyOf === undefined) return null
  const servers = anyOf.split(',').map((server) => server.trim())
  if (servers.every((server) => server !== '')) return servers
  throw new CommandError(EX.usage, '--any-of needs names separated by commas, such as --any-of a.example,b.example')
}

/** The attempts of a command that takes no time, with random waits as of seed 1. */
async function plan(shell: Shell, policy: RetryPolicy, limit: Limit): Promise<void> {
  let [before, printed]: [Duration | null, number] = [null, 0]
  for (const at of attempts(policy, { until: limit })) {
    const wait = before === null ? '' : `, after a wait of ${formatDuration(at - before)}`
    await shell.stdout.write(`attempt ${++printed} at ${formatDuration(at)}${wait}\n`)
    if (printed === MOST_PLANNED) return shell.stdout.write('and more\n')
    before = at
  }
}

async function run(shell: Shell, words: readonly string[], options: Options, end: (code: number) => void): Promise<void> {
  const { policy, limit } = checked(options)
  const servers = serversOf(options.anyOf)
  if (options.plan === true) return plan(shell, policy, limit)
  if (words.length === 0) throw new CommandError(EX.usage, 'no command: write it after --, such as deferd retry --for 1h -- curl -f URL')
  const { Repetition } = await import('./retried-command.ts')
  const { env, clock } = shell
  const { code, text } = await new Repetition({ words, servers, policy, limit, env, clock }).run()
  if (text !== undefined) throw new CommandError(code, maskControls(text))
  end(code)
}

export function addRetry(program: Command, shell: Shell, end: (code: number) => void): void {
  program
    .command('retry')
    .description('repeat a command under a retry policy until it succeeds')
    .argument('[command...]', 'the command and its arguments, after --')
    .addOption(new Option('--policy <policy>', 'retry policy, such as doubling or "fixed(10s)"').default(DEFAULT_POLICY))
    .addOption(new Option('--for <time>', 'begin no run after this time, and end one that goes on then').argParser(durationArgument))
    .option('--attempts <n>', 'run it at most so often', countArgument)
    .option('--any-of <servers>', 'in each round, run it for each of these until one succeeds: {} in its arguments, and $DEFERD_SERVER')
    .option('--plan', 'print the times of the runs, and run nothing')
    .addHelpText(
      'after',
      `
The policies are those of docs/backoff.md; the default doubles the wait from 1 s to 1 h, and lengthens each by chance, up to twice. A policy
without an end needs --for or --attempts. Input and output are those of the command. Signals are passed on to it; after SIGINT, SIGTERM,
SIGHUP and SIGQUIT it is not repeated.

Exit codes: 0 at the first success; when the policy or a limit ends, that of the last run (128 + n after signal n); 75 when no run ended before
--for: the command gets SIGTERM, and SIGKILL after 5 s; 64 wrong options; 69 the command cannot be started, which is not repeated.

Examples:
  deferd retry --for 1h -- curl -fsS https://api.example.com/report -o report.json
  deferd retry --attempts 5 --any-of x.example,y.example,z.example -- rsync -a data/ {}:/srv/data/`,
    )
    .action((words: readonly string[], options: Options) => run(shell, words, options, end))
}
