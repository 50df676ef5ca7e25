/** Tables for people: columns of a fixed width, text cut to its column, and colours. Pure. */
import { painted, type Display, type Role } from './style.ts'
import { clipped, maskControls } from '../../presentation/text.ts'

export interface Column {
  readonly heading: string
  readonly width: number
  /** Side to which text is moved; `left` when absent. */
  readonly align?: 'right'
  /**
   * Part of a long text that an ellipsis replaces; `end` when absent. With `never`, a long text is kept and shifts the columns
   * after it.
   */
  readonly cut?: 'middle' | 'never'
}

export type Cell = string | readonly [text: string, role: Role | null]

const textOf = (cell: Cell): string => maskControls(typeof cell === 'string' ? cell : cell[0])

/** Replaces the middle of a text that is longer than `width`, so that the beginning and the end of an address remain. */
export function cutMiddle(text: string, width: number): string {
  if (text.length <= width) return text
  const end = Math.floor((width - 1) / 2)
  return `${text.slice(0, Math.max(0, width - 1 - end))}…${text.slice(text.length - end)}`
}

function fitted(text: string, { width, align, cut }: Column): string {
  const shown = cut === 'never' ? text : cut === 'middle' ? cutMiddle(text, width) : clipped(text, width)
  return align === 'right' ? shown.padStart(width) : shown.padEnd(width)
}

/** One line, without blanks at its end. */
export function tableRow(cells: readonly Cell[], columns: readonly Column[], display: Pick<Display, 'coloured'>): string {
  const last = cells.findLastIndex((cell) => textOf(cell) !== '')
  return cells
    .slice(0, last + 1)
    .map((cell, i) => {
      const column = columns[i] ?? { heading: '', width: 0 }
      const text = fitted(textOf(cell), column)
      return painted(i === last ? text.trimEnd() : text, typeof cell === 'string' ? null : cell[1], display)
    })
    .join(' ')
}

export const tableHeading = (columns: readonly Column[], display: Pick<Display, 'coloured'>): string => {
  const line = tableRow(
    columns.map(({ heading }) => heading),
    columns,
    { coloured: false },
  )
  return painted(line, 'heading', display)
}

/** Characters of a line that remain beside these columns. */
export const widthBeside = (columns: readonly Column[], { width }: Pick<Display, 'width'>): number =>
  width - columns.reduce((sum, column) => sum + column.width + 1, 0)

/**
 * Columns as wide as their longest text: names, and figures at the right. When they exceed the line, the names are cut in the middle,
 * to 8 characters at least.
 */
export function columnsFor(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  { width }: Pick<Display, 'width'>,
): readonly Column[] {
  const natural = headings.map((heading, i) => rows.reduce((most, row) => Math.max(most, textOf(row[i] ?? '').length), heading.length))
  const [first = 0, ...others] = natural
  const left = width - others.reduce((sum, one) => sum + one + 1, 0)
  const names = { heading: headings[0] ?? '', width: Math.max(8, Math.min(first, left)), cut: 'middle' } as const
  return [names, ...others.map((one, i) => ({ heading: headings[i + 1] ?? '', width: one, align: 'right' }) as const)]
}

/** Sender and recipient of a message in one cell. When both do not fit, the recipient has the larger part. */
export function addressPair(sender: string, recipient: string, others: number, width: number): string {
  const more = others > 0 ? ` +${others}` : ''
  const whole = `${sender} → ${recipient}${more}`
  if (whole.length <= width) return whole
  const left = Math.max(6, width - 3 - more.length)
  const forRecipient = Math.min(recipient.length, Math.max(left - sender.length, Math.ceil(left * 0.6)))
  return `${cutMiddle(sender, left - forRecipient)} → ${cutMiddle(recipient, forRecipient)}${more}`
}

/** Width of the display from which the reason is on the line of the addresses. On a narrower display, it has a line of its own. */
const ONE_LINE_WIDTH = 110
const INDENT = 2

/** Rows that end with sender, recipient and reason. */
export class StoryTable {
  readonly #columns: readonly Column[]
  readonly #display: Display
  readonly #addresses: Column
  readonly #reason: Column | null

  constructor(columns: readonly Column[], heading: string, display: Display) {
    const rest = widthBeside(columns, display)
    const isOneLine = display.width >= ONE_LINE_WIDTH
    const width = isOneLine ? Math.floor(rest / 2) : rest
    this.#columns = columns
    this.#display = display
    this.#addresses = { heading: 'SENDER → RECIPIENT', width }
    this.#reason = isOneLine ? { heading, width: rest - width - 1 } : null
  }

  get heading(): string {
    return tableHeading([...this.#columns, this.#addresses, ...(this.#reason === null ? [] : [this.#reason])], this.#display)
  }

  /** One line, or two with the reason in the second. */
  row(cells: readonly Cell[], { sender, recipient, others }: Parties, reason: string): string {
    const addresses = addressPair(maskControls(sender), maskControls(recipient), others, this.#addresses.width)
    if (this.#reason !== null)
      return tableRow([...cells, addresses, reason], [...this.#columns, this.#addresses, this.#reason], this.#display)
    const line = tableRow([...cells, addresses], [...this.#columns, this.#addresses], this.#display)
    const room = this.#display.width - INDENT
    return reason === '' ? line : `${line}\n${' '.repeat(INDENT)}${clipped(maskControls(reason), room)}`
  }
}

/** Sender, first recipient, and the number of further recipients. */
interface Parties {
  readonly sender: string
  readonly recipient: string
  readonly others: number
}
