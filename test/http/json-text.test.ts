/** JSON of requests, with a limit of values. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MOST_VALUES, parseJson } from '../../src/http/json-text.ts'

/** The number of elements and members, and one for each array and object without any. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const inner = Object.values(value)
  return Math.max(1, inner.length) + inner.reduce((sum: number, one) => sum + valuesIn(one), 0)
}

test('a body is parsed with as many values as are allowed, and refused with more', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.nat(2), (value, indent) => {
      const bytes = Buffer.from(JSON.stringify(value, null, indent))
      const count = valuesIn(value)
      expect(parseJson(bytes, count)).toEqual(JSON.parse(bytes.toString()))
      // A short text is not counted, since it cannot have many values.
      if (count > 0 && bytes.length > count - 1) expect(() => parseJson(bytes, count - 1)).toThrow('request body too large: the limit is')
    }),
    { numRuns: 300 },
  )
})

test('quotes, brackets and commas in a text are no values', () => {
  const text = '[{,"\\\\",'.repeat(MOST_VALUES)
  expect(parseJson(Buffer.from(JSON.stringify([text, text])), 2)).toEqual([text, text])
})

test.each(['[', '{"a":', '[1,', '"",', '[[],'])('a body of %s without end is refused before it is parsed', (piece) => {
  expect(() => parseJson(Buffer.from(piece.repeat(MOST_VALUES * 2)), MOST_VALUES)).toThrow('the limit is 150,000 values')
})
