/**
 * Makes pictures small: a PNG (W3C PNG specification) with 24 or 32 bits a pixel becomes one with a palette. Screens have few colours
 * besides the edges of letters, so that most of them are kept as they are; the rarest become the nearest one that is kept.
 */
import { constants, crc32, deflateSync, inflateSync } from 'node:zlib'

const SIGNATURE = 8
const CHUNK_OVERHEAD = 12
const COLOURS = 256

interface Pixels {
  readonly width: number
  readonly height: number
  /** Red, green and blue of each pixel as one number. */
  readonly colours: Uint32Array
}

/** The nearest of left, above and the pixel between them (Paeth filter). */
function paeth(left: number, above: number, corner: number): number {
  const estimate = left + above - corner
  const [toLeft, toAbove, toCorner] = [Math.abs(estimate - left), Math.abs(estimate - above), Math.abs(estimate - corner)]
  if (toLeft <= toAbove && toLeft <= toCorner) return left
  return toAbove <= toCorner ? above : corner
}

/** Takes back the filter of each row. */
function unfiltered(filtered: Buffer, { rows, stride, step }: { rows: number; stride: number; step: number }): Buffer {
  const bytes = Buffer.alloc(rows * stride)
  for (let row = 0; row < rows; row++) {
    const from = row * (stride + 1)
    const to = row * stride
    for (let i = 0; i < stride; i++) {
      const left = i < step ? 0 : (bytes[to + i - step] ?? 0)
      const above = row === 0 ? 0 : (bytes[to + i - stride] ?? 0)
      const corner = row === 0 || i < step ? 0 : (bytes[to + i - stride - step] ?? 0)
      const predicted = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filtered[from] ?? 0] ?? 0
      bytes[to + i] = ((filtered[from + 1 + i] ?? 0) + predicted) & 0xff
    }
  }
  return bytes
}

function decoded(png: Buffer): Pixels {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)]
  const [depth, type] = [png[24], png[25]]
  if (depth !== 8 || (type !== 2 && type !== 6)) throw new Error(`the picture has ${depth} bits of type ${type}, expected 8 of type 2 or 6`)
  const step = type === 2 ? 3 : 4
  const parts: Buffer[] = []
  for (let at = SIGNATURE; at < png.length;) {
    const length = png.readUInt32BE(at)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length))
    at += CHUNK_OVERHEAD + length
  }
  const bytes = unfiltered(inflateSync(Buffer.concat(parts)), { rows: height, stride: width * step, step })
  return { width, height, colours: Uint32Array.from({ length: width * height }, (_, i) => bytes.readUIntBE(i * step, 3)) }
}

const distance = (a: number, b: number): number =>
  ((a >> 16) - (b >> 16)) ** 2 + (((a >> 8) & 0xff) - ((b >> 8) & 0xff)) ** 2 + ((a & 0xff) - (b & 0xff)) ** 2

/** Up to COLOURS colours, the most frequent first, none of which is near to another one. */
function paletteOf(colours: Uint32Array): readonly number[] {
  const counts = new Map<number, number>()
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const byCount = [...counts].toSorted(([a, m], [b, n]) => n - m || a - b).map(([colour]) => colour)
  for (let apart = 0; ; apart += 12) {
    const kept: number[] = []
    for (const colour of byCount) {
      if (kept.length > COLOURS) break
      if (kept.every((one) => distance(one, colour) > apart)) kept.push(colour)
    }
    if (kept.length <= COLOURS) return kept
  }
}

/** A function that gives the place of the nearest colour of the palette. */
function nearest(palette: readonly number[]): (colour: number) => number {
  const known = new Map(palette.map((colour, place) => [colour, place]))
  return (colour) => {
    const found = known.get(colour)
    if (found !== undefined) return found
    const distances = palette.map((one) => distance(one, colour))
    const place = distances.indexOf(Math.min(...distances))
    known.set(colour, place)
    return place
  }
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

/** The same picture with a palette. */
export function withPalette(png: Buffer): Buffer {
  const { width, height, colours } = decoded(png)
  const palette = paletteOf(colours)
  const placeOf = nearest(palette)
  const rows = Buffer.alloc(height * (width + 1))
  colours.forEach((colour, i) => (rows[Math.floor(i / width) * (width + 1) + 1 + (i % width)] = placeOf(colour)))
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 3, 0, 0, 0], 8)
  const table = Buffer.concat(palette.map((colour) => Buffer.from([colour >> 16, (colour >> 8) & 0xff, colour & 0xff])))
  const pixels = deflateSync(rows, { level: 9, memLevel: 9, strategy: constants.Z_DEFAULT_STRATEGY })
  return Buffer.concat([
    png.subarray(0, SIGNATURE),
    chunk('IHDR', head),
    chunk('PLTE', table),
    chunk('IDAT', pixels),
    chunk('IEND', Buffer.alloc(0)),
  ])
}
