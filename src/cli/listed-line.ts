/**
 * One line per message: on a terminal in columns and for people, elsewhere for programs.
 */
import { queueIdOf } from '../queue/message.ts'
import type { ListedMessage } from '../queue/reader.ts'
import { shownSender } from './message-json.ts'
import { delayReason, nextAttemptAt, type DestinationRecords } from './standing.ts'
import { byteSize, clipped, harmless, isoTime, relative, span } from './text.ts'

/** What lines depend on beside the message. */
export interface Facts {
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

export const headings = (width: number): string =>
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

/** In columns on a terminal, else exact and separated by tabs; without the line end. */
export function listedLine(listed: ListedMessage, facts: Facts): string {
  return facts.columns === null ? lineForPrograms(listed, facts) : lineForPeople(listed, facts, facts.columns)
}
