/** `deferd queue move`: moves the mail of a queue to another queue, through the daemon when one runs. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Config } from '../../config/options.ts'
import type { MoveProgress, MoveSummary } from '../../queue/queue-move.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { countText, ProgressLine } from '../shell/progress.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import type { Shell } from '../shell/shell.ts'
import { jsonLine, maskControls, plural } from '../../presentation/text.ts'

interface Options {
  readonly to: string
  readonly from?: string
  readonly final?: true
  readonly json?: true
}

const isUrl = (place: string): boolean => /^\w+:\/\//.test(place)

/** The place with an absolute path, because the daemon has another working directory. */
const absolute = (place: string): string => (isUrl(place) ? place : resolve(place))

/** The configuration of the source. */
function sourceOf(config: Config, { from }: Options): Config {
  if (from === undefined) return config
  if (isUrl(from)) throw new CommandError(EX.usage, 'cannot move from a URL: this version moves mail between queue directories only')
  return { ...config, queue_directory: absolute(from), queue_database: '' }
}

async function moved(shell: Shell, client: QueueClient, { to, final }: Options): Promise<MoveSummary> {
  const line = new ProgressLine(shell.stderr, shell.clock)
  const show = ({ moved: count, waiting }: MoveProgress): void =>
    line.show(`${countText('moving', count, null)}${waiting ? '; waiting for deliveries and notices to end' : ''}`)
  try {
    return await client.move({ to: absolute(to), isFinal: final === true, who: shell.user }, show)
  } finally {
    await line.finish()
  }
}

async function report(shell: Shell, summary: MoveSummary, { to, final, json }: Options): Promise<void> {
  const place = absolute(to)
  if (json === true) await shell.stdout.write(jsonLine({ to: place, final: final === true, ...summary }))
  else {
    const next = final === true ? `; the whole queue is there now: set queue_directory = "${place}" and start deferd again` : ''
    await shell.stdout.write(maskControls(`${plural(summary.moved, 'message')} moved to ${place}${next}`) + '\n')
  }
  const [first] = summary.unreadable
  if (first === undefined) return
  throw new CommandError(
    EX.data,
    `${plural(summary.unreadable.length, 'message')} cannot be read and stays in the queue, the first is ${first}`,
  )
}

async function move(shell: Shell, options: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const client = await shell.openQueueClient(sourceOf(config, options))
  try {
    await report(shell, await moved(shell, client, options), options)
  } finally {
    await client.close()
  }
}

export function addQueueMove(parent: Command, shell: Shell): void {
  subcommand(parent, 'move', 'move mail to another queue, while mail is accepted and delivered')
    .requiredOption('--to <directory>', 'the other queue; a missing folder is created')
    .option('--from <directory>', 'the queue to move (default: queue_directory)')
    .option('--final', 'move everything and retire the queue: no daemon starts with it afterwards')
    .option('--json', 'print the outcome as a JSON object')
    .addHelpText(
      'after',
      `
Messages move with their schedule, attempts and content, and keep their queue ids where these are free. A message in delivery, or with
a notice due, stays; with --final, the daemon refuses mail (421) and waits for these. No daemon may run with the other queue. After
an interruption, repeat the command: each message is then in one of the queues.

Examples:
  deferd queue move --to /srv/mail/queue
  deferd queue move --to /srv/mail/queue --final`,
    )
    .action((options: Options, command: Command) => move(shell, options, command))
}
