/** Table of qshape(1): counts messages by domain and age, and formats the table. Pure. */
import { MINUTE, type Duration } from '../../system/clock.ts'
import { maskControls } from '../../presentation/text.ts'

export interface ShapeLayout {
  /** Number of age columns. The last one has no upper limit. */
  readonly buckets: number
  /** Upper age limit of the first age column, in minutes. */
  readonly minutes: number
  /** True when all columns span the same time; otherwise each column spans twice the time of the previous one. */
  readonly linear: boolean
  readonly width: number
  /** Minimum number of subdomains that gives a parent domain a row; null for no such rows. */
  readonly parents: number | null
  /** Maximum number of rows, including TOTAL; no limit when absent. */
  readonly rows?: number | undefined
}

const LEAST_NAME_WIDTH = 18

/** The total, then one count per column. */
type Counts = number[]

export class Shape {
  readonly #layout: ShapeLayout
  readonly #nameOf: (address: string) => string
  readonly #total: Counts
  readonly #rows = new Map<string, Counts>()
  readonly #subdomains = new Map<string, number>()

  /** `nameOf` returns the row in which an address is counted. */
  constructor(layout: ShapeLayout, nameOf: (address: string) => string = domainName) {
    this.#layout = layout
    this.#nameOf = nameOf
    this.#total = this.#fresh()
  }

  /** Counts the address of a recipient or, with sender counts, of a sender in the column of its age. */
  count(address: string, age: Duration): void {
    const column = this.#column(age)
    add(this.#total, column)
    let name = this.#nameOf(address)
    let isNew = this.#add(name, column)
    if (this.#layout.parents === null) return
    for (let parent = parentOf(name); parent !== null; parent = parentOf(name)) {
      if (isNew) this.#subdomains.set(parent, (this.#subdomains.get(parent) ?? 0) + 1)
      isNew = this.#add(parent, column)
      name = parent
    }
  }

  /** One object per row, TOTAL first. `limits` are the upper limits of the age columns in minutes; the last column has none. */
  toJson(): readonly object[] {
    const limits = [...this.#limits(), null]
    const object = (domain: string, [total = 0, ...counts]: Counts) => ({ domain, total, limits, counts })
    return [object('TOTAL', this.#total), ...this.#sorted().map(([name, counts]) => object(name, counts))]
  }

  /** Exact tab-separated values, one line per row, TOTAL first: name, total, and the count of each age column. */
  toValues(): readonly string[] {
    const rows: readonly (readonly [string, Counts])[] = [['TOTAL', this.#total], ...this.#sorted()]
    return rows.map(([name, counts]) => [maskControls(name), ...counts].join('\t'))
  }

  /** The table, with a heading as its first line. */
  toString(): string {
    const headings = this.#headings()
    const widths = headings.map((heading, i) => Math.max(2, heading.length, String(this.#total[i]).length) + 1)
    const nameWidth = Math.max(LEAST_NAME_WIDTH, this.#layout.width - widths.reduce((sum, width) => sum + width, 0))
    const line = (name: string, cells: readonly (string | number)[]) =>
      fitted(maskControls(name), nameWidth) + cells.map((cell, i) => String(cell).padStart(widths[i] ?? 0)).join('')
    const { rows: limit = Infinity } = this.#layout
    const rows = this.#sorted().slice(0, Math.max(0, limit - 1))
    return [line('', headings), line('TOTAL', this.#total), ...rows.map(([name, counts]) => line(name, counts))].join('\n')
  }

  #fresh(): Counts {
    return Array.from({ length: this.#layout.buckets + 1 }, () => 0)
  }

  /** Adds a count for a name. Returns true for a new name. */
  #add(name: string, column: number): boolean {
    const known = this.#rows.get(name)
    const counts = known ?? this.#fresh()
    if (known === undefined) this.#rows.set(name, counts)
    add(counts, column)
    return known === undefined
  }

  #column(age: Duration): number {
    const { minutes, buckets, linear } = this.#layout
    const ratio = age / (minutes * MINUTE)
    if (ratio < 1) return 1
    return Math.min(buckets, linear ? Math.floor(ratio) + 1 : 2 + Math.floor(Math.log2(ratio)))
  }

  #limits(): readonly number[] {
    const { minutes, buckets, linear } = this.#layout
    return Array.from({ length: buckets - 1 }, (_, i) => (linear ? minutes * (i + 1) : minutes * 2 ** i))
  }

  #headings(): readonly string[] {
    const limits = this.#limits()
    return ['T', ...limits.map(String), `${limits.at(-1) ?? 0}+`]
  }

  #sorted(): readonly (readonly [string, Counts])[] {
    const { parents } = this.#layout
    const shown = [...this.#rows].filter(([name]) => !name.startsWith('.') || (this.#subdomains.get(name) ?? 0) >= (parents ?? Infinity))
    const byName = (a: string, b: string) => a.length - b.length || (a < b ? -1 : 1)
    return shown.toSorted(([a, countsA], [b, countsB]) => (countsB[0] ?? 0) - (countsA[0] ?? 0) || byName(a, b))
  }
}

function add(counts: Counts, column: number): void {
  counts[0] = (counts[0] ?? 0) + 1
  counts[column] = (counts[column] ?? 0) + 1
}

/** The whole address; MAILER-DAEMON for the null sender. */
export const addressName = (address: string): string => (address === '' ? 'MAILER-DAEMON' : address)

/** Domain of an address without superfluous dots; MAILER-DAEMON for the null sender. */
export function domainName(address: string): string {
  const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase()
  const trimmed = domain
    .replaceAll(/\.\.+/g, '.')
    .replace(/^\.(?=.)/, '')
    .replace(/(?<=.)\.$/, '')
  return address === '' ? 'MAILER-DAEMON' : trimmed
}

/** Parent of a domain: `a.b.example` → `.b.example` → null. Top-level domains have no row. */
function parentOf(name: string): string | null {
  const bare = name.startsWith('.') ? name.slice(1) : name
  const dot = bare.indexOf('.')
  if (dot < 0) return null
  const parent = bare.slice(dot + 1)
  return parent.includes('.') ? `.${parent}` : null
}

/** Right-aligns a name. The beginning of a name that is too long is replaced by `+`. */
function fitted(name: string, width: number): string {
  if (name.length <= width) return name.padStart(width)
  return name.startsWith('.') ? `.+${name.slice(name.length - width + 2)}` : `+${name.slice(name.length - width + 1)}`
}
