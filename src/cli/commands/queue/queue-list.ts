/** `deferd queue list`: a table of messages, also in a pipe; exact tab-separated values with --tsv, and JSON with --json. */
import { Option, type Command } from 'commander'
import { configOf, subcommand } from '../../shell/config-options.ts'
import { displayOf } from '../../shell/display.ts'
import { filterOf, isFiltered, type GivenConditions } from '../../../store/message-conditions.ts'
import { conditionTexts, givenConditions, withFilters, type FilterOptions } from '../../queue-client/filters.ts'
import { listHeading, listRow, type ListForm } from '../../render/list-row.ts'
import type { ListingOrder, ListingPart } from '../../queue-client/listing-parts.ts'
import { maildropParts } from '../../queue-client/maildrop-parts.ts'
import { listing } from '../../queue-client/queue-listing.ts'
import { SORTS, sortedListing, type Sort } from '../../queue-client/sorted-listing.ts'
import { submissions } from '../../../queue/intake/maildrop-listing.ts'
import { queryOf } from '../../queue-client/api-connection.ts'
import type { MessageRowJson } from '../../../resources/message-row-json.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { type OpenedReader, type RelayApi, type Shell, withSource } from '../../shell/shell.ts'
import { folderOf } from '../../queue-client/queue-access.ts'
import type { Config } from '../../../config/options.ts'
import { QUEUE_NAMES, type QueueName } from '../../../mail/message.ts'
import type { WallTime } from '../../../system/clock.ts'
import { jsonLine, plural } from '../../../presentation/text.ts'

/**
 * Options of the command. `maildrop` is an additional queue name here: it lists files that are not queued yet, and is not a
 * filter of operations.
 */
interface ListOptions extends FilterOptions {
  readonly queue?: QueueName | 'trash' | 'maildrop'
  readonly sort?: Sort
  readonly count?: true
  readonly wide?: true
  readonly tsv?: true
  readonly json?: true
}

type Order = ListingOrder & { readonly queue: ListOptions['queue'] | undefined; readonly sort: Sort | undefined }

/** Lists the maildrop, then the queue, up to the limit. */
async function* parts(opened: OpenedReader, config: Config, { queue, sort, ...order }: Order): AsyncGenerator<ListingPart> {
  let listed = 0
  if (queue === undefined || queue === 'maildrop') {
    for await (const part of maildropParts(config.queue_directory, order, opened.clock.wall)) {
      listed += part.count
      yield part
    }
  }
  const limit = order.limit === undefined ? undefined : order.limit - listed
  if (queue === 'maildrop' || limit === 0) return
  if (sort === undefined) yield* listing(opened, folderOf(config), { ...order, limit })
  else yield* sortedListing(opened, { ...order, limit }, sort)
}

/** Number of messages that `parts` would list. */
async function countOf({ reader, clock }: OpenedReader, directory: string, { queue, filter, limit = Infinity }: Order): Promise<number> {
  let count = 0
  if (queue === undefined || queue === 'maildrop')
    for await (const batch of submissions(directory, filter, clock.wall)) count += batch.length
  if (queue === 'maildrop') return Math.min(count, limit)
  for (let after = 0; count < limit;) {
    const page = await reader.find(filter, { after, limit: PAGE })
    count += page.length
    if (page.length < PAGE) break
    after = page.at(-1)?.id ?? after
  }
  return Math.min(count, limit)
}

const PAGE = 5_000

const formOf = (shell: Shell, config: Config, { json, tsv, wide }: ListOptions): ListForm => {
  if (json === true) return { kind: 'json' }
  return tsv === true
    ? { kind: 'tsv' }
    : { kind: 'table', display: displayOf(shell), wide: wide === true, hasClasses: config.class.size > 0 }
}

const emptyText = ({ queue, filter, limit }: Order): string =>
  queue === undefined && !isFiltered(filter) && limit !== 0 ? 'The queue is empty.\n' : 'No message matches.\n'

/** Prints the listing; for people with headings and the number of messages. */
async function write(shell: Shell, listed: AsyncIterable<ListingPart>, order: Order): Promise<void> {
  const { form } = order
  let count = 0
  for await (const part of listed) {
    if (count === 0 && form.kind === 'table') await shell.stdout.write(`${listHeading(form)}\n`)
    count += part.count
    await shell.stdout.write(part.lines)
  }
  if (form.kind === 'table') await shell.stdout.write(count === 0 ? emptyText(order) : `${plural(count, 'message')}\n`)
}

/** The path of the messages of a relay that match. */
const pathOf = (given: GivenConditions, form: 'messages' | 'rows'): string => `/messages${queryOf({ ...conditionTexts(given), form })}`

/** Lists the messages of a relay, each as a part. */
async function* remoteParts(api: RelayApi, given: GivenConditions, { form, limit }: Order, now: WallTime): AsyncGenerator<ListingPart> {
  const encoder = new TextEncoder()
  if (form.kind === 'json')
    for await (const one of api.rows(pathOf(given, 'messages'), limit)) yield { count: 1, lines: encoder.encode(jsonLine(one)) }
  else
    for await (const row of api.rows<MessageRowJson>(pathOf(given, 'rows'), limit))
      yield { count: 1, lines: encoder.encode(`${listRow(row, { now, form })}\n`) }
}

async function remoteCount(api: RelayApi, given: GivenConditions, limit: number | undefined): Promise<number> {
  const rows = api.rows(pathOf(given, 'rows'), limit)
  let count = 0
  while ((await rows.next()).done !== true) count++
  return count
}

/** Throws for options that need the queue of this machine. */
function assertRemote({ queue, sort }: Order): void {
  if (queue === 'maildrop')
    throw new CommandError(EX.usage, 'with --host, the maildrop is listed with all mail only: leave --queue out, or list it on its machine')
  if (sort !== undefined)
    throw new CommandError(EX.usage, '--sort needs all messages in memory: with --host, they come oldest first; sort the lines of --tsv')
}

async function printList(shell: Shell, command: Command, { queue, ...options }: ListOptions): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const now = source.clock.now()
    const given = givenConditions(queue === 'maildrop' ? options : { ...options, queue })
    const order = {
      queue,
      filter: filterOf(given, { now, wall: source.clock.wall }),
      now,
      sort: options.sort,
      limit: options.limit,
      form: formOf(shell, config, options),
    }
    if (source.api !== null) assertRemote(order)
    if (options.count === true) {
      const messages =
        source.api === null ? await countOf(source, config.queue_directory, order) : await remoteCount(source.api, given, options.limit)
      await shell.stdout.write(options.json === true ? jsonLine({ messages }) : `${messages}\n`)
    } else
      await write(
        shell,
        source.api === null ? parts(source, config, order) : remoteParts(source.api, given, order, source.clock.wall.now()),
        order,
      )
  })
}

export function addQueueList(parent: Command, shell: Shell): void {
  withFilters(subcommand(parent, 'list', 'list messages, one per line'), ['maildrop', ...QUEUE_NAMES, 'trash'])
    .addOption(new Option('--sort <order>', 'oldest, next due, most tried or largest first, or by address').choices(SORTS))
    .option('--count', 'print the number of messages only')
    .option('--wide', 'one line per message, with all recipients and the whole reason')
    .addOption(new Option('--tsv', 'exact tab-separated values, without headings').conflicts('json'))
    .option('--json', 'one JSON object per line: the members of `postqueue -j`, and more')
    .addHelpText(
      'after',
      `
A recipient's reason begins at the code of the reply. NEXT is the time until the next attempt. --tsv has the columns queue id, queue,
size, arrival, attempts, next attempt, sender, recipients, reason.

Examples:
  deferd queue list
  deferd queue list --status 4.7.0 --younger-than 1h --count
  deferd queue list --destination gmail.com --older-than 2h
  deferd queue list --reply "greylisted" --json | jq .queue_id`,
    )
    .action((options: ListOptions, command: Command) => printList(shell, command, options))
}
