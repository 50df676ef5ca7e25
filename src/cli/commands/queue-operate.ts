/**
 * `deferd queue flush`, hold, release, requeue, expire, delete and restore: one shape for all that changes messages.
 * They count before they act when somebody watches, and say what they did.
 */
import type { Command } from 'commander'
import type { Config } from '../../config/options.ts'
import type { OperationName, Order, Selection, Tally } from '../../queue/operations.ts'
import { configOf, subcommand } from '../command.ts'
import { isFiltered, toFilter, withFilters, type FilterOptions } from '../filters.ts'
import type { OperationsDesk } from '../operations-desk.ts'
import { pages } from '../page-reader.ts'
import { CommandError, EX, type Shell } from '../shell.ts'
import { recordsByName } from '../standing.ts'
import { grouped, harmless, jsonLine, plural } from '../text.ts'
import { listedLine } from '../listed-line.ts'

interface Verb {
  readonly operation: OperationName
  readonly summary: string
  readonly past: string
  readonly note: string
}

const VERBS: readonly Verb[] = [
  {
    operation: 'flush',
    summary: 'try messages now, also at destinations that did not answer',
    past: 'flushed',
    note: 'A flushed attempt that fails leaves the retry schedule as it was.',
  },
  {
    operation: 'hold',
    summary: 'put messages on hold: no attempts, no expiry',
    past: 'put on hold',
    note: '`deferd queue release` sets them free again.',
  },
  {
    operation: 'release',
    summary: 'release messages from hold',
    past: 'released',
    note: 'They keep their schedule; what is due is tried at once.',
  },
  {
    operation: 'requeue',
    summary: 'give messages a new queue id, a new schedule and their full lifetime',
    past: 'requeued',
    note: 'Recipients that were reached are not tried again; the arrival time is kept.',
  },
  {
    operation: 'expire',
    summary: 'give messages up: returned to their senders when their turn comes',
    past: 'given up',
    note: 'Use `deferd queue flush` afterwards to return them at once.',
  },
  {
    operation: 'delete',
    summary: 'delete messages; nobody is told',
    past: 'deleted',
    note: 'They go to the trash (trash_lifetime) unless --now is given; `deferd queue restore` brings them back.',
  },
  {
    operation: 'restore',
    summary: 'bring deleted messages back from the trash',
    past: 'restored',
    note: 'What was delivered meanwhile stays delivered. `deferd queue list --queue trash` shows what is there.',
  },
]

interface Options extends FilterOptions {
  readonly all?: true
  readonly dryRun?: true
  readonly now?: true
  readonly yes?: true
  readonly json?: true
}

/** Above this many messages somebody at a terminal is asked first. */
const ASK_ABOVE = 1_000
/** How many messages a dry run shows. */
const SHOWN = 20

function selectionOf(ids: readonly string[], options: Options, now: number): Selection {
  const filtered = isFiltered(filterOptions(options))
  if (ids.length > 0 && (filtered || options.all === true)) throw new CommandError(EX.usage, 'give queue ids, or filters, not both')
  if (ids.length > 0) return { kind: 'ids', ids }
  if (!filtered && options.all !== true) throw new CommandError(EX.usage, 'which messages? Give queue ids, filters, or --all')
  return { kind: 'filter', filter: toFilter(options, now), limit: options.limit }
}

const filterOptions = ({ all: _all, dryRun: _dryRun, now: _now, yes: _yes, json: _json, ...filters }: Options): FilterOptions => filters

/** The order in the words of the command line, for the audit. */
function wordsOf(ids: readonly string[], options: Options): string {
  const named = ids.length > 20 ? [...ids.slice(0, 20), `and ${ids.length - 20} more`] : ids
  const given = Object.entries({ ...filterOptions(options), all: options.all, now: options.now })
  return [
    ...named,
    ...given.filter(([, value]) => value !== undefined).map(([name, value]) => (value === true ? `--${name}` : `--${name}=${value}`)),
  ].join(' ')
}

/** Messages between two lines of progress. */
const TELL_EVERY = 10_000

/** Shows progress on a terminal, in plain lines. */
function progressLine(shell: Shell, past: string): (soFar: Tally) => void {
  let shown = 0
  return ({ matched }) => {
    if (shell.stderr.columns === null || matched - shown < TELL_EVERY) return
    shown = matched
    void shell.stderr.write(`${grouped(matched)} ${past} so far …\n`)
  }
}

async function confirmed(shell: Shell, desk: OperationsDesk, order: Order, options: Options): Promise<boolean> {
  if (options.yes === true || shell.stdout.columns === null) return true
  const { matched } = await desk.perform({ ...order, dryRun: true })
  if (matched <= ASK_ABOVE) return true
  const answer = await shell.ask(`${order.operation} ${plural(matched, 'message')}? [y/N] `)
  return answer === null || /^y(es)?$/i.test(answer.trim())
}

/** Counts what an order is about and shows the first of it, without acting. */
async function rehearse(shell: Shell, config: Config, desk: OperationsDesk, order: Order): Promise<Tally> {
  const shown: string[] = []
  const tally = await desk.perform(order, ({ ids }) => void shown.push(...ids.slice(0, SHOWN - shown.length)))
  const reader = await shell.openReader(config)
  try {
    const now = shell.clock.now()
    const facts = { now, records: recordsByName(reader.destinationRecords()), columns: shell.stdout.columns }
    const filters = shown.map((queueId) => ({ queueId, ...(order.operation === 'restore' ? { queue: 'trash' as const } : {}) }))
    for (const filter of filters) {
      for (const page of pages(reader, { filter, now, limit: 1 })) {
        await shell.stdout.write(page.map((listed) => `${listedLine(listed, facts)}\n`).join(''))
      }
    }
  } finally {
    reader.close()
  }
  return tally
}

async function report(shell: Shell, verb: Verb, tally: Tally, options: Options): Promise<void> {
  if (options.json === true) await shell.stdout.write(jsonLine({ operation: verb.operation, dry_run: options.dryRun === true, ...tally }))
  else if (options.dryRun === true)
    await shell.stdout.write(`${plural(tally.matched, 'message')} would be ${verb.past}; nothing was changed\n`)
  else
    await shell.stdout.write(
      `${plural(tally.changed, 'message')} ${verb.past}${tally.matched > tally.changed ? ` of ${grouped(tally.matched)}` : ''}\n`,
    )
  if (tally.unknown.length > 0) {
    const [first = ''] = tally.unknown
    const others = tally.unknown.length > 1 ? ` and ${grouped(tally.unknown.length - 1)} more` : ''
    throw new CommandError(EX.data, `no such message in the queue: ${harmless(first)}${others}`)
  }
}

async function operate(shell: Shell, verb: Verb, ids: readonly string[], options: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const selection = selectionOf(ids, options, shell.clock.now())
  const { operation } = verb
  const order: Order = { operation, selection, purge: options.now, dryRun: options.dryRun, who: shell.user, words: wordsOf(ids, options) }
  const desk = await shell.openDesk(config)
  try {
    if (options.dryRun === true) {
      const tally = options.json === true ? await desk.perform(order) : await rehearse(shell, config, desk, order)
      return await report(shell, verb, tally, options)
    }
    if (!(await confirmed(shell, desk, order, options))) {
      await shell.stdout.write('Nothing was changed.\n')
      return
    }
    await report(shell, verb, await desk.perform(order, progressLine(shell, verb.past)), options)
  } finally {
    await desk.close()
  }
}

export function addQueueOperations(parent: Command, shell: Shell): void {
  for (const verb of VERBS) {
    const command = withFilters(subcommand(parent, `${verb.operation} [id...]`, verb.summary))
      .option('--all', 'all messages')
      .option('--dry-run', 'count and show, change nothing')
      .option('--yes', 'do not ask, however many they are')
      .option('--json', 'print the outcome as a JSON object')
      .addHelpText('after', `\n${verb.note}\n\nExamples:\n${examples(verb.operation)}`)
      .action((ids: readonly string[], options: Options, self: Command) => operate(shell, verb, ids, options, self))
    if (verb.operation === 'delete') command.option('--now', 'for good, without the trash')
  }
}

const examples = (operation: OperationName): string =>
  [
    `  deferd queue ${operation} 4SVLCh0sf8z7Qhl`,
    `  deferd queue ${operation} --destination gmail.com --older-than 2h --dry-run`,
    `  deferd queue ${operation} --all`,
  ].join('\n')
