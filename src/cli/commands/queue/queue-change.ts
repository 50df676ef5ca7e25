/**
 * `deferd queue flush`, `hold`, `release`, `requeue`, `expire`, `delete`, `restore`, `reschedule` and `reclass`: bulk operations on messages. On a
 * terminal, they ask for confirmation when more than 1,000 messages are selected. All print the number of changed messages.
 */
import type { Command } from 'commander'
import type { Config } from '../../../config/options.ts'
import type { OperationName, OperationSummary } from '../../../queue/operation-request.ts'
import { configOf, durationArgument, instantArgument, subcommand } from '../../shell/config-options.ts'
import { NAMED_INSTANT, type NamedTime } from '../../../mail/message-times.ts'
import type { Duration } from '../../../system/clock.ts'
import { givenConditions, withFilters, type FilterOptions } from '../../queue-client/filters.ts'
import { ANY_MESSAGE } from '../../../store/message-conditions.ts'
import type { CommandedOperation, GivenSelection, QueueClient } from '../../shell/queue-client.ts'
import { pages } from '../../../queue/list-pages.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { displayOf } from '../../shell/display.ts'
import { countText, ProgressLine } from '../../shell/progress.ts'
import { isConfirmed } from '../../shell/confirmation.ts'
import { withReader, type Shell } from '../../shell/shell.ts'
import { returnTime } from '../../../presentation/expiry-words.ts'
import { recordsByName } from '../../../presentation/recipient-status.ts'
import { endsAttempts } from '../../../queue/operation-rounds.ts'
import { grouped, maskControls, jsonLine, plural, transferText } from '../../../presentation/text.ts'
import { namedTimeText } from '../../../queue/operation-words.ts'
import { passedOverTexts } from '../../../presentation/passed-over.ts'
import { messageRowJson } from '../../../resources/message-row-json.ts'
import { listHeading, listRow } from '../../render/list-row.ts'

interface Verb {
  readonly operation: OperationName
  readonly summary: string
  readonly past: string
  readonly doing: string
  readonly note: string
}

const VERBS: readonly Verb[] = [
  {
    operation: 'flush',
    summary: 'try messages now, also at dead destinations',
    past: 'flushed',
    doing: 'flushing',
    note: 'A flushed attempt that fails does not change the retry schedule. Messages in delivery, due already, on hold or scheduled are passed over, and counted.',
  },
  {
    operation: 'hold',
    summary: 'put messages on hold: no attempts, no expiry',
    past: 'put on hold',
    doing: 'holding',
    note: 'Undo with `deferd queue release`.',
  },
  {
    operation: 'release',
    summary: 'release messages from hold, and send scheduled messages now',
    past: 'released',
    doing: 'releasing',
    note: 'Messages keep their schedule; due recipients are tried at once. A scheduled message that is named, or selected with --queue scheduled, is sent now.',
  },
  {
    operation: 'requeue',
    summary: 'give messages a new queue id and a new schedule; their lifetime begins again',
    past: 'requeued',
    doing: 'requeueing',
    note: 'Delivered recipients are not tried again. Listings and notices keep the time of the arrival; the lifetime is counted from the requeue.',
  },
  {
    operation: 'expire',
    summary: 'expire messages: return them to their senders without another attempt',
    past: 'expired',
    doing: 'expiring',
    note: returnTime('`deferd queue flush` afterwards'),
  },
  {
    operation: 'delete',
    summary: 'delete messages without a notice to the sender',
    past: 'deleted',
    doing: 'deleting',
    note: 'Deleted messages stay in the trash for trash_lifetime, unless --now is given. Undo with `deferd queue restore`.',
  },
  {
    operation: 'restore',
    summary: 'restore deleted messages from the trash',
    past: 'restored',
    doing: 'restoring',
    note: 'Recipients delivered before the deletion are not tried again. `deferd queue list --queue trash` lists the trash.',
  },
  {
    operation: 'reschedule',
    summary: 'give messages a time before which no delivery begins',
    past: 'rescheduled',
    doing: 'rescheduling',
    note: 'Scheduled messages get another time; other messages become scheduled, with their lifetime counted from then. Messages in transfer are not changed. `deferd operation undo` gives those that are still scheduled their former times.',
  },
  {
    operation: 'reclass',
    summary: 'give messages another class of mail',
    past: 'given another class',
    doing: 'giving another class',
    note: 'The class is the last operand. Deliveries in progress go on; what is deferred then waits in the other class. Expiry and the next retry stay. `deferd operation undo` gives messages their former classes.',
  },
]

interface Options extends FilterOptions {
  readonly all?: true
  readonly dryRun?: true
  readonly now?: true
  readonly yes?: true
  readonly json?: true
  readonly at?: NamedTime
  readonly in?: Duration
}

interface Request {
  readonly class: string | null
  readonly ids: readonly string[]
  readonly options: Options
}

const MOST_LISTED = 20

function selectionOf(ids: readonly string[], options: Options): GivenSelection {
  const given = givenConditions(options)
  const filtered = Object.keys(given).length > 0
  if (ids.length > 0 && (filtered || options.all === true)) throw new CommandError(EX.usage, 'give either queue ids or filters, not both')
  if (ids.length > 0) return { kind: 'ids', ids }
  if (!filtered && options.all !== true) throw new CommandError(EX.usage, 'no messages selected: give queue ids, filters, or --all')
  return { kind: 'filter', given, limit: options.limit ?? null }
}

/** The time of a reschedule. Throws CommandError (64) unless one is given. */
function releaseOf({ operation }: Verb, { at, in: span }: Options): NamedTime | null {
  if (operation !== 'reschedule') return null
  if (at !== undefined && span === undefined) return at
  if (at === undefined && span !== undefined) return { kind: 'span', span }
  throw new CommandError(EX.usage, 'give the time with either --at TIME or --in SPAN')
}

/** Performs the operation. On a terminal, stderr shows how many of `total` messages are done. */
async function performed(
  { stderr, clock }: Shell,
  client: QueueClient,
  order: CommandedOperation,
  { doing, total }: { readonly doing: string; readonly total: number | null },
): Promise<OperationSummary> {
  const line = new ProgressLine(stderr, clock)
  try {
    return await client.perform(order, ({ matched }) => line.show(countText(doing, matched, total)))
  } finally {
    await line.finish()
  }
}

/** Number of selected messages; null when it is needed neither for a question nor for the progress. */
async function countOf(shell: Shell, client: QueueClient, order: CommandedOperation, { yes }: Options): Promise<number | null> {
  const isAsked = yes !== true && shell.stdout.columns !== null
  if (!isAsked && shell.stderr.columns === null) return null
  return (await performed(shell, client, { ...order, dryRun: true }, { doing: 'counting', total: null })).matched
}

/** Counts the selected messages and prints the first ones, without changing any. */
async function rehearse(shell: Shell, config: Config, client: QueueClient, order: CommandedOperation): Promise<OperationSummary> {
  if (shell.api !== null)
    throw new CommandError(EX.usage, 'a dry run lists the messages from the queue itself: with --host, add --json, which counts them')
  const shown: string[] = []
  const tally = await client.perform(order, ({ ids }) => void shown.push(...ids.slice(0, MOST_LISTED - shown.length)))
  await withReader(shell, config, async ({ reader, clock }) => {
    const records = recordsByName(await reader.destinationRecords())
    const facts = { now: clock.wall.now(), form: { kind: 'table', display: displayOf(shell), wide: false, hasClasses: false } as const }
    const queue = order.operation === 'restore' ? ('trash' as const) : null
    if (shown.length > 0) await shell.stdout.write(`${listHeading(facts.form)}\n`)
    const filters = shown.map((queueId) => ({ ...ANY_MESSAGE, queueId, queue }))
    for (const filter of filters) {
      for await (const page of pages(reader, { filter, limit: 1 })) {
        await shell.stdout.write(page.map((listed) => `${listRow(messageRowJson(listed, records, clock.wall), facts)}\n`).join(''))
      }
    }
  })
  return tally
}

/** `would be rescheduled to 2h from now`. A reclass selects messages that have the class already. */
function plannedText({ past }: Verb, { release, class: named }: CommandedOperation): string {
  if (named !== null) return `would have the class ${named}`
  const time = release === null ? '' : ` to ${namedTimeText(release)}${release.kind === 'span' ? ' from now' : ''}`
  return `would be ${past}${time}`
}

function outcomeOf(verb: Verb, order: CommandedOperation, { matched, changed, inTransfer, ...passed }: OperationSummary): string {
  const { operation, past } = verb
  const stand = inTransfer > 0 && endsAttempts(operation) ? [transferText(inTransfer)] : passedOverTexts(passed)
  if (order.dryRun) return [`${plural(matched, 'message')} ${plannedText(verb, order)}`, ...stand, 'nothing was changed'].join('; ')
  return [`${plural(changed, 'message')} ${past}${matched > changed ? ` of ${grouped(matched)}` : ''}`, ...stand].join('; ')
}

interface Ordered {
  readonly verb: Verb
  readonly order: CommandedOperation
}

async function report(shell: Shell, { verb, order }: Ordered, tally: OperationSummary, { json }: Options): Promise<void> {
  const { inTransfer, ...counts } = tally
  if (json === true)
    await shell.stdout.write(jsonLine({ operation: order.operation, dry_run: order.dryRun, ...counts, in_transfer: inTransfer }))
  else await shell.stdout.write(`${outcomeOf(verb, order, tally)}\n`)
  if (tally.unknown.length > 0) {
    const [first = ''] = tally.unknown
    const others = tally.unknown.length > 1 ? ` and ${grouped(tally.unknown.length - 1)} more` : ''
    throw new CommandError(EX.data, `no such message in the queue: ${maskControls(first)}${others}`)
  }
}

async function operate(shell: Shell, config: Config, verb: Verb, { ids, class: named, options }: Request): Promise<void> {
  const { operation } = verb
  const client = await shell.openQueueClient(config)
  try {
    const order: CommandedOperation = {
      operation,
      selection: selectionOf(ids, options),
      queues: null,
      purge: options.now === true,
      release: releaseOf(verb, options),
      class: named,
      dryRun: options.dryRun === true,
      who: shell.user,
    }
    if (options.dryRun === true) {
      const tally = options.json === true ? await client.perform(order) : await rehearse(shell, config, client, order)
      return await report(shell, { verb, order }, tally, options)
    }
    const total = await countOf(shell, client, order, options)
    if (!(await isConfirmed(shell, order.operation, { matched: total, yes: options.yes === true }))) {
      await shell.stdout.write('Nothing was changed.\n')
      return
    }
    await report(shell, { verb, order }, await performed(shell, client, order, { doing: verb.doing, total }), options)
  } finally {
    await client.close()
  }
}

/** The operands of a reclass end with the class. */
const requestOf = ({ operation }: Verb, operands: readonly string[]): Pick<Request, 'ids' | 'class'> =>
  operation === 'reclass' ? { ids: operands.slice(0, -1), class: operands.at(-1) ?? null } : { ids: operands, class: null }

export function addQueueOperations(parent: Command, shell: Shell): void {
  for (const verb of VERBS) {
    const isReclass = verb.operation === 'reclass'
    const command = withFilters(subcommand(parent, `${verb.operation} ${isReclass ? '<class...>' : '[id...]'}`, verb.summary))
      .option('--all', 'all messages')
      .option('--dry-run', 'count and show messages, change nothing')
      .option('--yes', 'do not ask for confirmation')
      .option('--json', 'print the outcome as a JSON object')
      .addHelpText('after', `\n${verb.note}\n\nExamples:\n${examples(verb.operation)}`)
      .action(async (operands: readonly string[], options: Options, self: Command) => {
        const { config } = await configOf(shell, self)
        await operate(shell, config, verb, { ...requestOf(verb, operands), options })
      })
    if (isReclass) command.usage('[options] [id...] <class>')
    if (verb.operation === 'delete') command.option('--now', 'delete at once, without the trash')
    if (verb.operation === 'reschedule')
      command
        .option('--at <time>', `this time: ${NAMED_INSTANT}`, (text): NamedTime => ({ kind: 'instant', at: instantArgument(text) }))
        .option('--in <span>', 'this time from now, such as 2h', durationArgument)
  }
}

function examples(operation: OperationName): string {
  const more: { readonly [Name in OperationName]?: string } = { reschedule: ' --in 2h', reclass: ' bulk' }
  const last = more[operation] ?? ''
  return [
    `  deferd queue ${operation} 4SVLCh0sf8z7Qhl${last}`,
    `  deferd queue ${operation} --destination gmail.com --older-than 2h --dry-run${last}`,
    `  deferd queue ${operation} --all${last}`,
  ].join('\n')
}
