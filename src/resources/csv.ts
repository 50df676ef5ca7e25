/** Entries of a list as CSV (RFC 4180): a column for each member of their shape, times as ISO 8601. */
import { z } from 'zod'
import { instantOf, isoTime } from '../presentation/text.ts'
import { isTime } from './members.ts'

type Members = Readonly<Record<string, unknown>>

interface Column {
  readonly name: string
  readonly isTime: boolean
  valueIn(entry: Members, row: Members): unknown
}

export interface CsvForm {
  readonly shape: z.ZodObject
  /** Member with the list of which each object gives a row of its own; null for a row per entry. */
  readonly rowsOf: string | null
}

/** A field of RFC 4180. A spreadsheet takes a leading `=`, `+`, `-` or `@` for a formula, which text of remote origin must not be. */
export const csvText = (text: string): string => {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

function csvField(value: unknown, isInstant: boolean): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number') return isInstant ? isoTime(instantOf(value)) : String(value)
  return csvText(typeof value === 'string' ? value : JSON.stringify(value))
}

const rowShapeOf = ({ shape, rowsOf }: CsvForm): z.ZodObject | null => {
  const list = rowsOf === null ? null : shape.shape[rowsOf]
  return list instanceof z.ZodArray && list.element instanceof z.ZodObject ? list.element : null
}

function columnsOf(form: CsvForm): readonly Column[] {
  const rowShape = rowShapeOf(form)
  const own: readonly Column[] = Object.entries(form.shape.shape)
    .filter(([name]) => rowShape === null || name !== form.rowsOf)
    .map(([name, member]) => ({ name, isTime: isTime(member), valueIn: (entry) => entry[name] }))
  if (rowShape === null) return own
  const ofRows = Object.entries(rowShape.shape).map(([name, member]): Column => ({
    name: `${form.rowsOf}.${name}`,
    isTime: isTime(member),
    valueIn: (_entry, row) => row[name],
  }))
  return [...own, ...ofRows]
}

/** Rows of CSV, with their headings, for chunks that consist of whole lines of JSON. A member that is a list or an object is JSON in its field. */
export async function* csvRows(form: CsvForm, lines: AsyncIterable<Uint8Array | string>): AsyncGenerator<string> {
  const columns = columnsOf(form)
  const hasRows = rowShapeOf(form) !== null
  let text = `${columns.map(({ name }) => name).join(',')}\r\n`
  for await (const chunk of lines) {
    for (const line of Buffer.from(chunk).toString().split('\n')) {
      if (line === '') continue
      const entry = JSON.parse(line) as Members
      const listed = hasRows && form.rowsOf !== null ? (entry[form.rowsOf] as readonly Members[]) : []
      for (const row of listed.length === 0 ? [{}] : listed)
        text += `${columns.map((one) => csvField(one.valueIn(entry, row), one.isTime)).join(',')}\r\n`
    }
    yield text
    text = ''
  }
  if (text !== '') yield text
}
