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

interface Element {
  readonly bytes: number
  readonly write: (into: Buffer, at: number) => unknown
}

function arrayOf(oid: number, elements: readonly (Element | null)[]): Buffer {
  const size = elements.reduce((sum, one) => sum + 4 + (one?.bytes ?? 0), HEADER)
  const buffer = Buffer.allocUnsafe(elements.length === 0 ? 12 : size)
  buffer.writeInt32BE(elements.length === 0 ? 0 : 1, 0)
  buffer.writeInt32BE(elements.includes(null) ? 1 : 0, 4)
  buffer.writeInt32BE(oid, 8)
  if (elements.length === 0) return buffer
  buffer.writeInt32BE(elements.length, 12)
  buffer.writeInt32BE(1, 16)
  let at = HEADER
  for (const one of elements) {
    at = buffer.writeInt32BE(one?.bytes ?? NULL_LENGTH, at)
    one?.write(buffer, at)
    at += one?.bytes ?? 0
  }
  return buffer
}

const each = <T>(values: readonly (T | null)[], element: (value: T) => Element): (Element | null)[] =>
  values.map((value) => (value === null ? null : element(value)))

/** For `bigint[]`. Safe integers only. */
export const int8s = (values: readonly (number | null)[]): Buffer =>
  arrayOf(
    OIDS.int8,
    each(values, (value) => ({
      bytes: 8,
      // The high half carries the sign. BigInt would take twice as long.
      write: (into, at) => into.writeUInt32BE(value >>> 0, into.writeInt32BE(Math.floor(value / 2 ** 32), at)),
    })),
  )

/** For `int[]`. */
export const int4s = (values: readonly (number | null)[]): Buffer =>
  arrayOf(
    OIDS.int4,
    each(values, (value) => ({ bytes: 4, write: (into, at) => into.writeInt32BE(value, at) })),
  )

/** For `smallint[]`. */
export const int2s = (values: readonly (number | null)[]): Buffer =>
  arrayOf(
    OIDS.int2,
    each(values, (value) => ({ bytes: 2, write: (into, at) => into.writeInt16BE(value, at) })),
  )

/** For `boolean[]`. */
export const booleans = (values: readonly boolean[]): Buffer =>
  arrayOf(
    OIDS.bool,
    each(values, (value) => ({ bytes: 1, write: (into, at) => into.writeUInt8(value ? 1 : 0, at) })),
  )

/** For `text[]`. NUL, which PostgreSQL does not store, becomes U+FFFD. */
export const texts = (values: readonly (string | null)[]): Buffer =>
  arrayOf(
    OIDS.text,
    each(values, (value) => {
      const storable = storableText(value)
      return { bytes: Buffer.byteLength(storable), write: (into, at) => into.write(storable, at) }
    }),
  )

/** For `bytea[]`. */
export const byteas = (values: readonly (Uint8Array | null)[]): Buffer =>
  arrayOf(
    OIDS.bytea,
    each(values, (value) => ({ bytes: value.byteLength, write: (into, at) => into.set(value, at) })),
  )

/** Text as PostgreSQL stores it: U+FFFD in place of NUL. */
export const storableText = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text)
