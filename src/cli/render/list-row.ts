/**
 * Formats messages for `queue list`: as a table for people, where the width of the terminal decides between one line and two
 * lines per message, or as exact tab-separated values.
 */
import { byteSize, instantOf, isoTime, maskControls, relative, span } from '../../presentation/text.ts'
import type { MessageRowJson } from '../../resources/message-row-json.ts'
import type { WallTime } from '../../system/clock.ts'
import { roleOfQueue, type Display } from './style.ts'
import { StoryTable, tableHeading, tableRow, type Cell, type Column } from './table.ts'

export type ListForm =
  | { readonly kind: 'json' }
  | { readonly kind: 'tsv' }
  | {
      readonly kind: 'table'
      readonly display: Display
      /** True to print uncut lines. */
      readonly wide: boolean
      /** True for a column with the class of each message in uncut lines. */
      readonly hasClasses: boolean
    }

type TableForm = Extract<ListForm, { readonly kind: 'table' }>

/** Facts that a line needs in addition to the message. */
interface RowFacts {
  readonly now: WallTime
  readonly form: Exclude<ListForm, { readonly kind: 'json' }>
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
]
const CLASS: readonly Column[] = [{ heading: 'CLASS', width: 8 }]
const PARTIES: readonly Column[] = [
  { heading: 'SENDER → RECIPIENTS', width: 0, cut: 'never' },
  { heading: '', width: 0, cut: 'never' },
]

const uncutColumns = ({ hasClasses }: Pick<TableForm, 'hasClasses'>): readonly Column[] => [
  ...UNCUT,
  ...(hasClasses ? CLASS : []),
  ...PARTIES,
]

export const listHeading = ({ display, wide, hasClasses }: TableForm): string =>
  wide ? tableHeading(uncutColumns({ hasClasses }), display) : new StoryTable(COLUMNS, 'REASON', display).heading

const arrivalOf = ({ received_time: received }: MessageRowJson): WallTime => instantOf(received)

const nextOf = ({ next_attempt_time: next }: MessageRowJson): WallTime | null => (next === null ? null : instantOf(next))

function tableLines(row: MessageRowJson, now: WallTime, { display, wide, hasClasses }: TableForm): string {
  const { queue_id: id, queue_name: queue, sender, recipients, attempts, reason } = row
  const age = now - arrivalOf(row)
  const next = nextOf(row)
  const named: readonly Cell[] = [id, [row.forced_expire ? `${queue}#` : queue, roleOfQueue[queue]]]
  if (wide) {
    const when = next === null ? '-' : relative(next, now)
    const addresses = `${sender} → ${recipients.join(', ')}${reason === null ? '' : `: ${reason}`}`
    const ofClass = hasClasses ? [row.class ?? '-'] : []
    const cells = [...named, byteSize(row.message_size), span(age), String(attempts), when, ...ofClass, addresses]
    return tableRow(cells, uncutColumns({ hasClasses }), display)
  }
  const wait = next === null ? '-' : next <= now ? 'now' : span(next - now, 1)
  const [recipient = '', ...others] = recipients
  const cells = [...named, span(age, 1), String(attempts), wait]
  return new StoryTable(COLUMNS, 'REASON', display).row(cells, { sender, recipient, others: others.length }, row.short_reason ?? '')
}

function values(row: MessageRowJson): string {
  const { queue_id: id, queue_name: queue, message_size: size, attempts, sender, recipients, reason } = row
  const next = nextOf(row)
  const cells = [id, queue, size, isoTime(arrivalOf(row)), attempts, next === null ? '-' : isoTime(next)]
  return [...cells, sender, recipients.join(','), reason ?? ''].map((cell) => maskControls(String(cell))).join('\t')
}

/** Formats a row without line end. */
export const listRow = (row: MessageRowJson, { now, form }: RowFacts): string =>
  form.kind === 'tsv' ? values(row) : tableLines(row, now, form)
