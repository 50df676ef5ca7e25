/** `deferd trace`: shows the lines of the next SMTP sessions of the running daemon. */
import type { Command } from 'commander'
import { leftOutText, tracedText } from '../../sessions/session-lines.ts'
import type { TraceEntry, TraceProgress, TraceTerms } from '../../sessions/traces.ts'
import { formatDuration } from '../../system/duration.ts'
import { MINUTE, type Duration } from '../../system/clock.ts'
import { jsonLine } from '../../presentation/text.ts'
import { configOf, durationArgument, countArgument, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'

interface Options {
  readonly smtpd?: true
  readonly destination?: string
  readonly peer?: string
  readonly source?: string
  readonly sender?: string
  readonly recipient?: string
  readonly listener?: string
  readonly count: number
  readonly for?: Duration
  readonly json?: true
}

/** Time of a trace whose command names none. */
const USUAL_TIME: Duration = 10 * MINUTE

/** Throws for a condition that no session of the direction has. */
function termsOf({ smtpd, destination, peer, source, sender, recipient, listener, count, for: time = USUAL_TIME }: Options): TraceTerms {
  if (count === 0) throw new CommandError(EX.usage, '--count: expected 1 or more')
  if (time === 0) throw new CommandError(EX.usage, '--for: expected a time above 0')
  if (smtpd === true && destination !== undefined)
    throw new CommandError(EX.usage, '--destination selects deliveries: leave it or --smtpd out')
  if (smtpd !== true && listener !== undefined) throw new CommandError(EX.usage, '--listener selects mail that is received: add --smtpd')
  return { direction: smtpd === true ? 'from' : 'to', destination, peer, source, sender, recipient, listener, count, for: time }
}

const entryText = (entry: TraceEntry): string =>
  `${'dropped' in entry ? leftOutText(entry.dropped) : tracedText(entry.session, entry.text)}\n`

const nodeText = ({ node, others, deliverer }: Extract<TraceProgress, { node: string }>): string =>
  `deferd: shows sessions of node ${node}, not of ${others.join(', ')}${deliverer === null ? '' : `; ${deliverer} delivers to the destination: trace there`}\n`

async function trace(shell: Shell, options: Options, command: Command): Promise<void> {
  const terms = termsOf(options)
  const { config } = await configOf(shell, command)
  let written = Promise.resolve()
  const text = (entry: TraceEntry): string => (options.json === true ? jsonLine(entry) : entryText(entry))
  const show = (progress: TraceProgress): void =>
    void (written = written.then(() => ('node' in progress ? shell.stderr.write(nodeText(progress)) : shell.stdout.write(text(progress)))))
  const end = await shell.trace(config, { ...terms, who: shell.user }, show)
  await written
  if (end === null) throw new CommandError(EX.unavailable, `no daemon runs with queue_directory = ${config.queue_directory}`)
  if (end.why === 'stopped') throw new CommandError(EX.temporary, 'the daemon has ended the trace, because it stops or closes its queue')
  if (end.sessions === 0) throw new CommandError(EX.temporary, `no such session began within ${formatDuration(terms.for)}`)
}

const FIVE = 5

export function addTrace(program: Command, shell: Shell): void {
  subcommand(program, 'trace', 'show what both sides say in the next SMTP sessions of the running daemon')
    .option('--smtpd', 'sessions of clients that send mail to this relay, in place of deliveries')
    .option('--destination <pattern>', 'mail for this destination; * matches any text')
    .option('--peer <pattern>', 'name or address of the other side')
    .option('--source <pattern>', 'local address')
    .option('--sender <pattern>', 'mail of this envelope sender')
    .option('--recipient <pattern>', 'mail with this envelope recipient')
    .option('--listener <pattern>', 'with --smtpd: address of the listener, as it is configured')
    .option('--count <number>', 'number of sessions', countArgument, FIVE)
    .option('--for <time>', 'end after this time (default: 10m)', durationArgument)
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      `
Each line begins with the number of its session. Content, passwords and tokens are not shown; addresses are. A session is shown from
its beginning when its conditions become known, such as the recipient. At most three traces run at the same time, each with at most
200 lines in a second; further ones are counted. Nothing is stored but a record in the audit log. Of several nodes, that of this
queue_directory is traced; standard error names the others, and the one that delivers to the destination.

Exit codes: 0 the sessions have ended, or the time; 69 no daemon runs; 75 no such session began, three traces run already, or the
daemon stops; 77 another user runs the daemon.

Examples:
  deferd trace --destination example.net
  deferd trace --smtpd --sender app@example.com --count 1`,
    )
    .action((options: Options, command: Command) => trace(shell, options, command))
}
