/**
 * Formats messages for `queue list`: as a table for people, where the width of the terminal decides between one line and two
 * lines per message, or as exact tab-separated values.
 */
import type { QueueTime } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'
import { queueIdOf } from '../../mail/message.ts'
import type { ListedMessage } from '../../store/queue-reader.ts'
import { shownSender } from '../../mail/envelope.ts'
import { nextAttemptAt, shortReason, delayReason, type DestinationRecords } from '../../presentation/recipient-status.ts'
import { roleOfQueue, type Display } from './style.ts'
import { StoryTable, tableHeading, tableRow, type Cell, type Column } from './table.ts'
import { byteSize, maskControls, isoTime, relative, span } from '../../presentation/text.ts'

export type ListForm =
  | { readonly kind: 'json' }
  | { readonly kind: 'tsv' }
  | { readonly kind: 'table'; readonly display: Display; /** True to print uncut lines. */ readonly wide: boolean }

/** Facts that a line needs in addition to the message. */
export interface RowFacts {
  readonly now: QueueTime
  readonly wall: WallView
  readonly records: DestinationRecords
  readonly form: Exclude<ListForm, { readonly kind: 'json' }>
}

/** A message, or an entry of the maildrop, as a row. */
export interface ListRow {
  readonly id: string
  readonly queue: keyof typeof roleOfQueue
  readonly forcedExpire: boolean
  readonly size: number
  readonly arrivedAt: QueueTime
  readonly attempts: number
  /** Null when there is no next attempt. */
  readonly next: QueueTime | null
  readonly sender: string
  readonly recipients: readonly string[]
  /** `short` is the part of the reason from the reply code on. Both texts are empty without a failure. */
  readonly reason: { readonly whole: string; readonly short: string }
}

const COLUMNS: readonly Column[] = [
  { heading: 'QUEUE ID', width: 15, cut: 'never' },
  { heading: 'QUEUE', width: 9 },
  { heading: 'AGE', width: 4, align: 'right' },
  { heading: 'TRIES', width: 5, align: 'right' },
  { heading: 'NEXT', width: 4, align: 'right' },
]
const UNCUT: readonly Column[] = [
  { heading: 'QUEUE ID', width: 17, cut: 'never' },
  { heading: 'QUEUE', width: 9 },
  { heading: 'SIZE', width: 7, align: 'right' },
  { heading: 'AGE', width: 7, align: 'right' },
  { heading: 'TRIES', width: 5, align: 'right' },
  { heading: 'NEXT', width: 11, align: 'right' },
  { heading: 'SENDER → RECIPIENTS', width: 0, cut: 'never' },
  { heading: '', width: 0, cut: 'never' },
]

export const listHeading = ({ display, wide }: Extract<ListForm, { readonly kind: 'table' }>): string =>
  wide ? tableHeading(UNCUT, display) : new StoryTable(COLUMNS, 'REASON', display).heading

function tableLines(row: ListRow, now: QueueTime, { display, wide }: Extract<ListForm, { readonly kind: 'table' }>): string {
  const { id, queue, size, sender, recipients, next, reason } = row
  const age = now - row.arrivedAt
  const named: readonly Cell[] = [id, [row.forcedExpire ? `${queue}#` : queue, roleOfQueue[queue]]]
  if (wide) {
    const when = next === null ? '-' : relative(next, now)
    const addresses = `${sender} → ${recipients.join(', ')}${reason.whole === '' ? '' : `: ${reason.whole}`}`
    return tableRow([...named, byteSize(size), span(age), String(row.attempts), when, addresses], UNCUT, display)
  }
  const wait = next === null ? '-' : next <= now ? 'now' : span(next - now, 1)
  const [recipient = '', ...others] = recipients
  const cells = [...named, span(age, 1), String(row.attempts), wait]
  return new StoryTable(COLUMNS, 'REASON', display).row(cells, { sender, recipient, others: others.length }, reason.short)
}

function values({ id, queue, size, arrivedAt, attempts, next, sender, recipients, reason }: ListRow, wall: WallView): string {
  const cells = [id, queue, size, isoTime(wall.of(arrivedAt)), attempts, next === null ? '-' : isoTime(wall.of(next))]
  return [...cells, sender, recipients.join(','), reason.whole].map((cell) => maskControls(String(cell))).join('\t')
}

/** A row without line end. */
export const formatRow = (row: ListRow, { now, form, wall }: Omit<RowFacts, 'records'>): string =>
  form.kind === 'tsv' ? values(row, wall) : tableLines(row, now, form)

function rowOf({ message, queue, recipients, forcedExpire }: ListedMessage, records: DestinationRecords): ListRow {
  let attempts = 0
  let next: QueueTime | null = null
  let reason = { whole: '', short: '' }
  for (const recipient of recipients) {
    attempts = Math.max(attempts, recipient.attempts)
    const at = nextAttemptAt(recipient, queue, records)
    if (at !== null && (next === null || at < next)) next = at
    if (reason.whole === '') reason = { whole: delayReason(recipient, records) ?? '', short: shortReason(recipient, records) ?? '' }
  }
  const addresses = recipients.map(({ address }) => address)
  const { size, arrivedAt } = message
  const facts = { size, arrivedAt, attempts, next, reason, forcedExpire, queue }
  return { ...facts, id: queueIdOf(message), sender: shownSender(message.sender), recipients: addresses }
}

/** Formats a message without line end. */
export const listRow = (listed: ListedMessage, facts: RowFacts): string => formatRow(rowOf(listed, facts.records), facts)
