/**
 * Reads the records of Postfix's queue files: a type letter, a length in groups of seven bits, and data. A pointer record continues at
 * another offset; Postfix uses pointers to replace parts of a file. Pure.
 */

/** A queue file that cannot be taken over. The message gives the reason. */
export class UnusableQueueFile extends Error {
  override readonly name = 'UnusableQueueFile'
}

export interface QueueRecord {
  /** The letter of rec_type.h. */
  readonly type: string
  readonly data: Buffer
  /** Offset of the record. */
  readonly at: number
  /** Offset after the record. */
  readonly end: number
  /** True after a pointer record that was followed. */
  readonly isMoved: boolean
  /** True after any pointer record, also a place holder: a filter may have edited the file. */
  readonly isEditable: boolean
}

/** Pointers to an earlier offset in one file. As in Postfix, more of them count as a loop. */
const MOST_REVERSE_POINTERS = 100

const POINTER = 'p'
const END = 'E'

/** Yields all records except pointers, up to the end record. Throws UnusableQueueFile. */
export function* recordsOf(file: Buffer): Generator<QueueRecord> {
  let at = 0
  let reversed = 0
  let isMoved = false
  let isEditable = false
  for (;;) {
    const record = { ...recordAt(file, at), isMoved, isEditable }
    at = record.end
    if (record.type === POINTER) {
      const target = targetOf(record)
      isEditable = true
      if (target === 0) continue
      if (target < record.end && ++reversed > MOST_REVERSE_POINTERS) throw new UnusableQueueFile('its pointer records form a loop')
      at = target
      isMoved = true
    } else {
      yield record
      if (record.type === END) return
    }
  }
}

function recordAt(file: Buffer, at: number): Omit<QueueRecord, 'isMoved' | 'isEditable'> {
  const type = file[at]
  if (type === undefined) throw new UnusableQueueFile('it ends without an end record')
  let length = 0
  for (let offset = at + 1, factor = 1; ; offset++, factor *= 128) {
    const byte = file[offset]
    if (byte === undefined) throw new UnusableQueueFile('it ends within a record')
    length += (byte & 0x7f) * factor
    if (length > file.length) throw new UnusableQueueFile('a record is longer than the file')
    if (byte >= 0x80) continue
    const end = offset + 1 + length
    if (end > file.length) throw new UnusableQueueFile('it ends within a record')
    return { type: String.fromCharCode(type), data: file.subarray(offset + 1, end), at, end }
  }
}

/** The offset in a pointer record; 0 for a place holder. */
function targetOf({ data }: Pick<QueueRecord, 'data'>): number {
  const text = data.toString('latin1')
  if (!/^ *\d{1,15} *$/.test(text)) throw new UnusableQueueFile('a pointer record has no offset')
  return Number(text)
}
