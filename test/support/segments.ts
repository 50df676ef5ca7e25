/** Splits the input of a client into packets. */
import fc from 'fast-check'

/** Splits at these positions. */
export function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [...new Set(places.filter((place) => place > 0 && place < bytes.length))].toSorted((a, b) => a - b)
  return [0, ...cuts].map((from, i) => bytes.subarray(from, cuts[i]))
}

export const singleBytes = (bytes: Buffer): Buffer[] => cutAt(bytes, [...bytes.keys()])

/** The input whole, byte by byte, and split in two at each position. */
export function* segmentations(bytes: Buffer): Generator<{ readonly name: string; readonly packets: Buffer[] }> {
  yield { name: 'whole', packets: [bytes] }
  yield { name: 'byte by byte', packets: singleBytes(bytes) }
  for (let place = 1; place < bytes.length; place++) yield { name: `cut at ${place}`, packets: cutAt(bytes, [place]) }
}

/** Random bytes, in which bytes that matter to a line reader are frequent. */
export const wireBytes = (maxLength = 60): fc.Arbitrary<Buffer> =>
  fc
    .array(fc.constantFrom('\r\n', '\n', '\r', '.', '\r\n.\r\n', '\n.\n', '.\r\n', '\0', 'a', 'b', ' ', 'MAIL FROM:<e@x>\r\n'), {
      maxLength,
    })
    .map((parts) => Buffer.from(parts.join(''), 'latin1'))

export const cuts = fc.array(fc.nat(400), { maxLength: 30 })
