/** `deferd queue move`: moves the mail of a queue to another queue, through the daemon when one runs. */
import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Config } from '../../../config/options.ts'
import { databaseName, parseDatabaseUrl } from '../../../config/values/database-url.ts'
import { placeNamed, placeOf, PLACES, type QueuePlace } from '../../../config/values/queue-place.ts'
import type { MoveProgress, MoveRequest, MoveSummary } from '../../../queue/queue-move.ts'
import { configOf, subcommand } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { countText, ProgressLine } from '../../shell/progress.ts'
import type { QueueClient } from '../../shell/queue-client.ts'
import type { Shell } from '../../shell/shell.ts'
import { jsonLine, maskControls, plural, transferText } from '../../../presentation/text.ts'

interface Options {
  readonly to: string
  readonly from?: string
  readonly final?: true
  readonly json?: true
}

/** The place as operators name it: an absolute path, or the URL without its password. */
const NAMES: { readonly [Place in QueuePlace]: (place: string) => string } = { folder: (path) => resolve(path), database: databaseName }
const named = (place: string): string => NAMES[placeNamed(place)](place)

/** The place for the mover. The daemon has another working directory, and not the password in the environment of the command. */
function completed({ env }: Shell, place: string): string {
  switch (placeNamed(place)) {
    case 'folder':
      return named(place)
    case 'database': {
      const password = env['PGPASSWORD'] ?? ''
      const isBare = place.includes('@') && place === named(place)
      return isBare && password !== '' ? place.replace('@', `:${encodeURIComponent(password)}@`) : place
    }
  }
}

/** The source: the configured queue, through its daemon when one runs, or the queue of --from. */
function openSource(shell: Shell, config: Config, { from }: Options): Promise<QueueClient> {
  if (from === undefined) return shell.openQueueClient(config)
  switch (placeNamed(from)) {
    case 'folder':
      return shell.openQueueClient({ ...config, queue_directory: named(from), queue_database: '' })
    case 'database':
      if (named(from) === databaseName(config.queue_database)) return shell.openQueueClient(config)
      if (parseDatabaseUrl(from) === null)
        throw new CommandError(EX.usage, `--from ${named(from)} has not the form postgresql://USER@HOST/DATABASE`)
      return shell.openQueueClient({ ...config, queue_database: from }, { skipsDaemon: true })
  }
}

/** Whether two places are one queue. Links are followed. */
function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((place) =>
    placeNamed(place) === 'folder' && existsSync(place) ? realpathSync(place) : named(place),
  )
  return first === second
}

async function moved(shell: Shell, client: QueueClient, config: Config, options: Options): Promise<MoveSummary> {
  const { to, from, final } = options
  const line = new ProgressLine(shell.stderr, shell.clock)
  const show = ({ moved: count, waiting }: MoveProgress): void =>
    line.show(`${countText('moving', count, null)}${waiting ? '; waiting for deliveries and notices to end' : ''}`)
  try {
    const request: MoveRequest = {
      from: PLACES[from === undefined ? placeOf(config) : placeNamed(from)].movedFrom,
      to: completed(shell, to),
      isFinal: final === true,
      durability: config.queue_database_durability,
      who: shell.user,
    }
    return await client.move(request, show)
  } finally {
    await line.finish()
  }
}

async function report(shell: Shell, summary: MoveSummary, { to, final, json }: Options): Promise<void> {
  const place = named(to)
  const { moved: count, inTransfer, unreadable } = summary
  if (json === true)
    await shell.stdout.write(jsonLine({ to: place, final: final === true, moved: count, in_transfer: inTransfer, unreadable }))
  else {
    const next =
      final === true ? `; the whole queue is there now: set ${PLACES[placeNamed(to)].parameter} = "${place}" and start deferd again` : ''
    const stay = inTransfer > 0 ? `; ${transferText(inTransfer)}, and what is deferred stays` : ''
    await shell.stdout.write(maskControls(`${plural(count, 'message')} moved to ${place}${stay}${next}`) + '\n')
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
  const { from = config[PLACES[placeOf(config)].parameter], to } = options
  if (isSame(from, to)) throw new CommandError(EX.usage, `--to ${databaseName(to)} is the queue to move: name another place`)
  const client = await openSource(shell, config, options)
  try {
    await report(shell, await moved(shell, client, config, options), options)
  } finally {
    await client.close()
  }
}

export function addQueueMove(parent: Command, shell: Shell): void {
  subcommand(parent, 'move', 'move mail to another queue, while mail is accepted and delivered')
    .requiredOption('--to <place>', 'the other queue: a directory, or the URL of a PostgreSQL database; what is missing is created')
    .option('--from <place>', 'the queue to move (default: that of the configuration)')
    .option('--final', 'move everything and retire the queue: no daemon starts with it afterwards')
    .option('--json', 'print the outcome as a JSON object')
    .addHelpText(
      'after',
      `
Messages move with their schedule, attempts and content, and keep their queue ids where these are free. A message in transfer, or with
a notice due, stays; with --final, the daemon refuses mail (421) and waits for these. No daemon may run with a directory to which mail
moves; nodes may run with a database. After an interruption, repeat the command: each message is then in one of the queues. The password
of a database is taken from the URL or from PGPASSWORD, and is not printed.

Examples:
  deferd queue move --to /srv/mail/queue
  deferd queue move --to postgresql://deferd@db1.example.com/deferd
  deferd queue move --to /srv/mail/queue --final`,
    )
    .action((options: Options, command: Command) => move(shell, options, command))
}
