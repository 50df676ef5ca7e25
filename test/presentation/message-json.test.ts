import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonLine, jsonLines } from '../../src/presentation/text.ts'

/** Mostly plain, as pages are; now and then what must be escaped, or takes more bytes than it has letters. */
const text = fc.oneof(
  { weight: 20, arbitrary: fc.string() },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  { weight: 1, arbitrary: fc.constantFrom('\u007f', 'é', 'ééé', '€', '😀', '\ud800', '\u2028', '\u0000\n\r', 'x'.repeat(500) + 'é') },
)

test('lines are the same together and alone', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ address: text, reason: fc.option(text, { nil: undefined }) }), { maxLength: 20 }), (values) => {
      expect(Buffer.from(jsonLines(values)).toString()).toBe(values.map(jsonLine).join(''))
    }),
    { numRuns: 2_000 },
  )
})

test('control characters are escaped, except line ends', () => {
  const printed = Buffer.from(jsonLines([{ reason: 'a\u007fb\u0085c\u2028d\u202ee\u001b[31m' }, { reason: 'plain' }])).toString()
  expect(printed).toBe('{"reason":"a\\u007fb\\u0085c\\u2028d\\u202ee\\u001b[31m"}\n{"reason":"plain"}\n')
})
