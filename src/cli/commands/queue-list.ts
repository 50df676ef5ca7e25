/**
 * `deferd queue list`: one line per message. On a terminal in columns and for people; elsewhere separated by tabs and
 * exact; with --json for programs.
 */
import type { Command } from 'commander'
import { queueIdOf } from '../../queue/message.ts'
import type { ListedMessage } from '../../queue/reader.ts'
import { configOf, subcommand } from '../command.ts'
import { toFilter, withFilters, type FilterOptions } from '../filters.ts'
import { messageJson, shownSender } from '../message-json.ts'
import { pages } from '../page-reader.ts'
import type { Shell } from '../shell.ts'
import { delayReason, nextAttemptAt, recordsByName, type DestinationRecords } from '../standing.ts'
import { byteSize, clipped, harmless, isoTime, jsonLines, plural, relative, span } from '../text.ts'

interface Facts {
  readonly now: number
  readonly records: DestinationRecords
  readonly columns: number | null
}

interface Column {
  readonly heading: string
  readonly width: number
}

const WIDE: readonly Column[] = [
  { heading: 'QUEUE ID', width: 17 },
  { heading: 'QUEUE', width: 8 },
  { heading: 'SIZE', width: 7 },
  { heading: 'AGE', width: 7 },
  { heading: 'TRIES', width: 5 },
  { heading: 'NEXT', width: 11 },
  { heading: 'SENDER → RECIPIENTS: REASON', width: 0 },
]
/** Without the size, and with times in one unit, so that room is left for who and why. */
const NARROW = WIDE.filter(({ heading }) => heading !== 'SIZE').map((column) =>
  column.heading === 'AGE' || column.heading === 'NEXT' ? { ...column, width: 4 } : column,
)
/** Columns of a terminal from which the wide table is readable. */
const IS_WIDE = 100

const aligned = (cells: readonly string[], width: number): string => {
  const layout = width < IS_WIDE ? NARROW : WIDE
  return clipped(cells.map((cell, i) => cell.padEnd(layout[i]?.width ?? 0)).join(' '), width)
}

const headings = (width: number): string =>
  aligned(
    (width < IS_WIDE ? NARROW : WIDE).map(({ heading }) => heading),
    width,
  )

/** What is the same for people and programs: attempts, next attempt and the reason that stands for all. */
function summary({ recipients, queue }: ListedMessage, records: DestinationRecords) {
  let attempts = 0
  let next: number | null = null
  let reason = ''
  for (const recipient of recipients) {
    attempts = Math.max(attempts, recipient.attempts)
    const at = nextAttemptAt(recipient, queue, records)
    if (at !== null && (next === null || at < next)) next = at
    if (reason === '') reason = delayReason(recipient, records) ?? ''
  }
  return { attempts, next, reason }
}

function lineForPeople(listed: ListedMessage, facts: Facts, width: number): string {
  const { message, queue, recipients, forcedExpire } = listed
  const { attempts, next, reason } = summary(listed, facts.records)
  const [first] = recipients
  const more = recipients.length > 1 ? ` +${recipients.length - 1}` : ''
  const story = `${shownSender(message.sender)} → ${first?.address ?? ''}${more}${reason === '' ? '' : `: ${reason}`}`
  const name = [queueIdOf(message), forcedExpire ? `${queue}#` : queue]
  const age = facts.now - message.arrivedAt
  if (width < IS_WIDE) {
    const wait = next === null ? '-' : next <= facts.now ? 'now' : span(next - facts.now, 1)
    return aligned([...name, span(age, 1), String(attempts), wait, harmless(story)], width)
  }
  const when = next === null ? '-' : relative(next, facts.now)
  return aligned([...name, byteSize(message.size), span(age), String(attempts), when, harmless(story)], width)
}

function lineForPrograms(listed: ListedMessage, { records }: Facts): string {
  const { message, queue, recipients } = listed
  const { attempts, next, reason } = summary(listed, records)
  const addresses = recipients.map(({ address }) => address).join(',')
  const cells = [queueIdOf(message), queue, message.size, isoTime(message.arrivedAt), attempts, next === null ? '-' : isoTime(next)]
  return [...cells, shownSender(message.sender), addresses, reason].map((cell) => harmless(String(cell))).join('\t')
}

export function listedLine(listed: ListedMessage, facts: Facts): string {
  return facts.columns === null ? lineForPrograms(listed, facts) : lineForPeople(listed, facts, facts.columns)
}

const textLines = (page: readonly ListedMessage[], facts: Facts): string => page.map((listed) => `${listedLine(listed, facts)}\n`).join('')

export async function printList(shell: Shell, command: Command, options: FilterOptions & { readonly json?: true }): Promise<void> {
  const { config } = await configOf(shell, command)
  const now = shell.clock.now()
  const reader = await shell.openReader(config)
  try {
    const facts: Facts = { now, records: recordsByName(reader.destinationRecords()), columns: shell.stdout.columns }
    let count = 0
    for (const page of pages(reader, { filter: toFilter(options, now), now, limit: options.limit })) {
      if (count === 0 && options.json !== true && facts.columns !== null) await shell.stdout.write(`${headings(facts.columns)}\n`)
      count += page.length
      const lines = options.json === true ? jsonLines(page.map((listed) => messageJson(listed, facts.records))) : textLines(page, facts)
      await shell.stdout.write(lines)
    }
    if (options.json !== true && facts.columns !== null) {
      await shell.stdout.write(count === 0 ? 'No message in the queue matches.\n' : `${plural(count, 'message')}\n`)
    }
  } finally {
    reader.close()
  }
}

export function addQueueList(parent: Command, shell: Shell): void {
  withFilters(subcommand(parent, 'list', 'list messages, one per line'), ['incoming', 'active', 'deferred', 'hold', 'corrupt', 'trash'])
    .option('--json', 'one JSON object per line: the members of `postqueue -j`, and more')
    .addHelpText(
      'after',
      `
Examples:
  deferd queue list
  deferd queue list --destination gmail.com --older-than 2h
  deferd queue list --reply "greylisted" --json | jq .queue_id`,
    )
    .action((options: FilterOptions & { readonly json?: true }, command: Command) => printList(shell, command, options))
}
