import { describe, expect, test } from 'vitest'
import { assertChunks, CHUNK_BYTES, Chunker, inChunks } from '../../src/store/chunks.ts'
import { cutAt } from '../support/segments.ts'

const content = (bytes: number): Buffer => Buffer.from(Array.from({ length: bytes }, (_, n) => n % 251))
const fillsItsBuffer = (chunk: Uint8Array): boolean => chunk.byteLength === chunk.buffer.byteLength

describe('a content', () => {
  test.each([0, 1, 200, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 300_001])(
    'of %i bytes becomes whole chunks and a rest, each in a buffer of its own',
    (bytes) => {
      const whole = content(bytes)
      const chunker = new Chunker()
      for (const piece of cutAt(whole, [1, 2, 3, 70_000, 70_001, 200_000])) chunker.add(piece)
      expect(chunker.bytes).toBe(bytes)
      expect(chunker.full).toBe(Math.floor(bytes / CHUNK_BYTES))
      const chunks = chunker.takeAll()
      expect(Buffer.concat(chunks).equals(whole)).toBe(true)
      expect(chunks.slice(0, -1).every((chunk) => chunk.byteLength === CHUNK_BYTES)).toBe(true)
      expect(chunks.every(fillsItsBuffer)).toBe(true)
    },
  )

  test('in thousands of tiny pieces becomes the same chunks', () => {
    const whole = content(CHUNK_BYTES + 10)
    const chunker = new Chunker()
    for (const byte of whole) chunker.add(Uint8Array.of(byte))
    expect(chunker.takeAll()).toEqual(inChunks(whole))
  })

  test('can be taken while it arrives', () => {
    const whole = content(3 * CHUNK_BYTES + 5)
    const chunker = new Chunker()
    chunker.add(whole.subarray(0, 2 * CHUNK_BYTES + 7))
    const early = chunker.takeFull()
    expect([early.length, chunker.full]).toEqual([2, 0])
    chunker.add(whole.subarray(2 * CHUNK_BYTES + 7))
    expect(Buffer.concat([...early, ...chunker.takeAll()]).equals(whole)).toBe(true)
  })
})

test('a short chunk that is not the last, and one that is too long, are refused with a reason', () => {
  assertChunks([new Uint8Array(CHUNK_BYTES), new Uint8Array(1)])
  expect(() => assertChunks([new Uint8Array(1), new Uint8Array(1)])).toThrow('chunk 0 of 2 has 1 bytes, not 65536')
  expect(() => assertChunks([new Uint8Array(CHUNK_BYTES + 1)])).toThrow('chunk 0 of 1 has 65537 bytes, not 65536')
})
