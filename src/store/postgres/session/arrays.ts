/**
 * Arrays as parameters of statements, in PostgreSQL's binary format (array_recv). The client would write them as text, which takes
 * several times as long, most of all for contents. The client sends a Buffer as it is, so a parameter needs its type in the statement:
 * `unnest($1::bigint[])`.
 */

/** OIDs of the element types (pg_type.dat). */
const OIDS = { bool: 16, bytea: 17, int8: 20, int2: 21, int4: 23, text: 25 } as const

/** Dimensions, flag for nulls, type, length and lower bound. */
const HEADER = 20
const NULL_LENGTH = -1

interface Element<T> {
  readonly oid: number
  /** Size of a value. */
  readonly bytes: (value: T) => number
  /** Writes a value, and returns the position behind it. */
  readonly write: (into: Buffer, value: T, at: number) => number
}

function arrayOf<T>({ oid, bytes, write }: Element<T>, values: readonly (T | null)[]): Buffer {
  let [size, nulls] = [HEADER, 0]
  for (const value of values) {
    if (value === null) nulls = 1
    size += 4 + (value === null ? 0 : bytes(value))
  }
  const buffer = Buffer.allocUnsafe(values.length === 0 ? 12 : size)
  buffer.writeInt32BE(values.length === 0 ? 0 : 1, 0)
  buffer.writeInt32BE(nulls, 4)
  buffer.writeInt32BE(oid, 8)
  if (values.length === 0) return buffer
  buffer.writeInt32BE(values.length, 12)
  buffer.writeInt32BE(1, 16)
  let at = HEADER
  for (const value of values) {
    const end = value === null ? at + 4 : write(buffer, value, at + 4)
    buffer.writeInt32BE(value === null ? NULL_LENGTH : end - at - 4, at)
    at = end
  }
  return buffer
}

const INT8: Element<number> = {
  oid: OIDS.int8,
  bytes: () => 8,
  // The high half carries the sign. BigInt would take twice as long.
  write: (into, value, at) => into.writeUInt32BE(value >>> 0, into.writeInt32BE(Math.floor(value / 2 ** 32), at)),
}
const INT4: Element<number> = { oid: OIDS.int4, bytes: () => 4, write: (into, value, at) => into.writeInt32BE(value, at) }
const INT2: Element<number> = { oid: OIDS.int2, bytes: () => 2, write: (into, value, at) => into.writeInt16BE(value, at) }
const BOOL: Element<boolean> = { oid: OIDS.bool, bytes: () => 1, write: (into, value, at) => into.writeUInt8(value ? 1 : 0, at) }
const TEXT: Element<string> = {
  oid: OIDS.text,
  bytes: (value) => Buffer.byteLength(value),
  write: (into, value, at) => at + into.write(value, at),
}
const BYTEA: Element<Uint8Array> = {
  oid: OIDS.bytea,
  bytes: ({ byteLength }) => byteLength,
  write: (into, value, at) => (into.set(value, at), at + value.byteLength),
}

/** For `bigint[]`. Safe integers only. */
export const int8s = (values: readonly (number | null)[]): Buffer => arrayOf(INT8, values)

/** For `int[]`. */
export const int4s = (values: readonly (number | null)[]): Buffer => arrayOf(INT4, values)

/** For `smallint[]`. */
export const int2s = (values: readonly (number | null)[]): Buffer => arrayOf(INT2, values)

/** For `boolean[]`. */
export const booleans = (values: readonly (boolean | null)[]): Buffer => arrayOf(BOOL, values)

/** For `text[]`. NUL, which PostgreSQL does not store, becomes U+FFFD. */
export const texts = (values: readonly (string | null)[]): Buffer =>
  arrayOf(
    TEXT,
    values.map((value) => (value === null ? null : storableText(value))),
  )

/** For `bytea[]`. */
export const byteas = (values: readonly (Uint8Array | null)[]): Buffer => arrayOf(BYTEA, values)

/** Text as PostgreSQL stores it: U+FFFD in place of NUL. */
export const storableText = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text)
