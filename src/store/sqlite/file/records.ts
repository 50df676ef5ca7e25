/**
 * Cells and records of SQLite's b-tree pages (https://www.sqlite.org/fileformat2.html#b_tree_pages). Throws Unreadable for bytes
 * that are no page, cell or record.
 */
import { PAGE_SIZE, type PageFile } from './page-file.ts'

export type Value = null | number | bigint | string | Uint8Array

export class Unreadable extends Error {
  override readonly name = 'Unreadable'
}

/** Kinds of b-tree pages, by their first byte. */
const KINDS = { 0x02: 'index-interior', 0x05: 'table-interior', 0x0a: 'index-leaf', 0x0d: 'table-leaf' } as const
type PageKind = (typeof KINDS)[keyof typeof KINDS]

export interface Cell {
  /** Row number in a table; in an interior page, the largest row number below `child`. 0 in an index. */
  readonly key: number
  /** Number of the page below the cell; 0 in a leaf. */
  readonly child: number
  /** Columns of the record; null in an interior page of a table. */
  readonly values: readonly Value[] | null
}

interface TreePage {
  readonly kind: PageKind
  readonly cells: readonly Cell[]
  /** Number of the page below and to the right of all cells; 0 in a leaf. */
  readonly right: number
  /** Number of cells that could not be read. */
  readonly unreadable: number
}

export function kindOf(page: Buffer, number: number): PageKind | undefined {
  return KINDS[page[number === 1 ? 100 : 0] as keyof typeof KINDS]
}

/** Reads a page of a b-tree; cells that cannot be read are counted. */
export function treePage(file: PageFile, number: number): TreePage {
  const page = file.page(number)
  if (page === undefined) throw new Unreadable(`page ${number} cannot be read`)
  const kind = kindOf(page, number)
  if (kind === undefined) throw new Unreadable(`page ${number} is not a page of a b-tree`)
  const start = number === 1 ? 100 : 0
  const count = page.readUInt16BE(start + 3)
  const pointers = start + (kind.endsWith('leaf') ? 8 : 12)
  if (pointers + 2 * count > PAGE_SIZE) throw new Unreadable(`page ${number} has a damaged header`)
  const cells: Cell[] = []
  let unreadable = 0
  for (let n = 0; n < count; n++) {
    try {
      cells.push(cellAt(file, page, page.readUInt16BE(pointers + 2 * n), kind))
    } catch (error) {
      if (!(error instanceof Unreadable) && !(error instanceof RangeError)) throw error
      unreadable++
    }
  }
  return { kind, cells, right: kind.endsWith('leaf') ? 0 : page.readUInt32BE(start + 8), unreadable }
}

function cellAt(file: PageFile, page: Buffer, start: number, kind: PageKind): Cell {
  let at = start
  const child = kind.endsWith('interior') ? page.readUInt32BE(at) : 0
  if (kind.endsWith('interior')) at += 4
  if (kind === 'table-interior') return { key: varint(page, at).value, child, values: null }
  const size = varint(page, at)
  at += size.bytes
  const key = kind === 'table-leaf' ? varint(page, at) : { value: 0, bytes: 0 }
  const payload = payloadAt(file, page, { at: at + key.bytes, size: size.value, isTable: kind === 'table-leaf' })
  return { key: key.value, child, values: record(payload) }
}

interface Payload {
  readonly at: number
  readonly size: number
  readonly isTable: boolean
}

/** The bytes of a record: those in the page, then the chain of overflow pages. */
function payloadAt(file: PageFile, page: Buffer, { at, size, isTable }: Payload): Buffer {
  if (size > 2 ** 31 || size < 1) throw new Unreadable('a record has a damaged size')
  const most = isTable ? PAGE_SIZE - 35 : Math.floor(((PAGE_SIZE - 12) * 64) / 255) - 23
  const least = Math.floor(((PAGE_SIZE - 12) * 32) / 255) - 23
  const surplus = least + ((size - least) % (PAGE_SIZE - 4))
  const local = size <= most ? size : surplus <= most ? surplus : least
  if (at + local > PAGE_SIZE) throw new Unreadable('a record leaves its page')
  const parts = [page.subarray(at, at + local)]
  let next = local < size ? page.readUInt32BE(at + local) : 0
  for (let left = size - local; left > 0; left -= PAGE_SIZE - 4) {
    const overflow = next > 0 && next <= file.count ? file.page(next) : undefined
    if (overflow === undefined) throw new Unreadable('a record continues on a page that cannot be read')
    parts.push(overflow.subarray(4, 4 + Math.min(left, PAGE_SIZE - 4)))
    next = overflow.readUInt32BE(0)
  }
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts)
}

function record(payload: Buffer): Value[] {
  const header = varint(payload, 0)
  if (header.value > payload.length || header.value < 1) throw new Unreadable('a record has a damaged header')
  const values: Value[] = []
  let data = header.value
  for (let at = header.bytes; at < header.value;) {
    const type = varint(payload, at)
    at += type.bytes
    const bytes = bytesOf(type.value)
    if (data + bytes > payload.length) throw new Unreadable('a column leaves its record')
    values.push(valueOf(type.value, payload.subarray(data, data + bytes)))
    data += bytes
  }
  return values
}

const INTEGER_BYTES = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0]

function bytesOf(type: number): number {
  if (type === 10 || type === 11) throw new Unreadable('a column has an unknown type')
  return type < 12 ? (INTEGER_BYTES[type] ?? 0) : (type - (type % 2 === 0 ? 12 : 13)) / 2
}

function valueOf(type: number, bytes: Buffer): Value {
  if (type === 0) return null
  if (type === 8 || type === 9) return type - 8
  if (type === 7) return bytes.readDoubleBE(0)
  if (type === 6) {
    const value = bytes.readBigInt64BE(0)
    return Number.isSafeInteger(Number(value)) ? Number(value) : value
  }
  if (type < 7) return bytes.readIntBE(0, bytes.length)
  return type % 2 === 0 ? bytes : bytes.toString('utf8')
}

function varint(bytes: Buffer, at: number): { readonly value: number; readonly bytes: number } {
  let value = 0
  for (let n = 0; n < 9; n++) {
    const byte = bytes[at + n]
    if (byte === undefined) throw new Unreadable('a number leaves its page')
    if (n === 8) return { value: value * 256 + byte, bytes: 9 }
    value = value * 128 + (byte & 0x7f)
    if (byte < 0x80) return { value, bytes: n + 1 }
  }
  throw new Unreadable('a number is too long')
}
