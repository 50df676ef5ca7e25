import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shownFields, shownFieldsIn } from '../../../src/mail/mime/shown-fields.ts'

const shown = (subject: string): string | undefined => shownFields({ subject, from: undefined }).subject

test.each([
  ['plain', 'plain'],
  ['=?utf-8?b?R3LDvMOfZQ==?= =?iso-8859-1?q?_f=FCr_dich?=', 'Grüße für dich'],
  ['=?utf-8?q?bell=07_and=1B[31m_escape?=', 'bell and[31m escape'],
  ['\u202eright to left', 'right to left'],
  ['=?utf-8?q?two=0Alines?=', 'two lines'],
  ['=?x-unknown?q?caf=C3=A9?=', 'café'],
  ['=?utf-8?b?not closed', '=?utf-8?b?not closed'],
  ['', ''],
])('%j is shown as %j', (given, expected) => {
  expect(shown(given)).toBe(expected)
})

test('at most 200 characters are kept, and no half of one', () => {
  expect(shown('x'.repeat(5_000))).toHaveLength(200)
  expect(Array.from(shown('😀'.repeat(900)) ?? '')).toEqual(Array.from({ length: 200 }, () => '😀'))
})

test('any text has no control character, is well formed and short', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom('=?utf-8?q?', '=0A', '?=', ' ', 'é', '=80') })),
      (given) => {
        const text = shown(given) ?? ''
        expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        expect(text.isWellFormed()).toBe(true)
        expect(Array.from(text).length).toBeLessThanOrEqual(200)
        expect(text).toBe(text.trim())
      },
    ),
    { numRuns: 30 },
  )
})

test('the first of several fields is read from a content', () => {
  expect(shownFieldsIn(Buffer.from('Subject: one\r\nSubject: two\r\nFrom: a@us.example\r\n\r\nSubject: body\r\n'))).toEqual({
    subject: 'one',
    fromHeader: 'a@us.example',
  })
})
