import { expect, test } from 'vitest'
import { z } from 'zod'
import { newTokenBody } from '../../src/queries/programs/program-tokens.ts'
import { operationRequestShape } from '../../src/queries/operations/operation-request-shape.ts'
import { compositionShape, envelopeQuery } from '../../src/api/submitted/submitted-mail.ts'
import { pageLimit } from '../../src/api/route/api-route.ts'
import { checkValue } from '../../src/presentation/checked-value.ts'

/** The errors of a value: path and sentence. */
function errors(shape: z.ZodType, value: unknown): readonly string[] {
  const checked = checkValue(shape, value)
  return checked.ok ? [] : checked.invalid.map(({ path, detail }) => `${path.join('/')}: ${detail}`)
}

const limit = z.strictObject({ limit: pageLimit })
const mail = { from: 'a@x.test', to: 'b@x.test' }
const filter = { operation: 'hold', selection: { kind: 'filter', filter: {} } }

test.each<[z.ZodType, unknown, readonly unknown[]]>([
  ...['abc', '1.5', '', ' 5', '0x10', '1e2', '-1', '1'.repeat(16)].map((text): [z.ZodType, unknown, readonly unknown[]] => [
    limit,
    { limit: text },
    [`limit: expected a whole number, got "${text}"`],
  ]),
  [limit, { limit: '0' }, ['limit: expected at least 1, got "0"']],
  [limit, { limit: '501' }, ['limit: expected at most 500, got "501"']],
  [limit, { limit: ['1', '2'] }, ['limit: expected a whole number, got an array of 2']],
  [limit, { bogus: 1, 'a/b': 2 }, ['bogus: unknown member; known: limit', 'a/b: unknown member; known: limit']],
  [limit, [], [': expected an object, got an empty array']],
  [limit, null, [': expected an object, got null']],
  [compositionShape, { ...mail, subject: 7 }, ['subject: expected a string, got 7']],
  [compositionShape, { ...mail, subject: 'a\r\nb' }, [String.raw`subject: expected one line, got "a\r\nb"`]],
  [compositionShape, { ...mail, to: 7 }, ['to: expected a string or an array, got 7']],
  [compositionShape, { ...mail, to: ['b@x.test', null] }, ['to/1: expected a string, got null']],
  [compositionShape, { ...mail, to: 'x'.repeat(10_001) }, [`to: expected at most 10,000 characters, got "${'x'.repeat(98)}…`]],
  [
    compositionShape,
    { ...mail, headers: { 'a b': 'c' } },
    ['headers/a b: the name of a member is invalid: expected the name of a header field'],
  ],
  ...['From', 'bcc', 'Content-Type', 'MIME-Version'].map((name): [z.ZodType, unknown, readonly unknown[]] => [
    compositionShape,
    { ...mail, headers: { [name]: 'x' } },
    [expect.stringMatching(`^headers/${name}: the name of a member is invalid: expected a field that no other member makes`)],
  ]),
  [compositionShape, { ...mail, attachments: [{ name: 'a', content: '!' }] }, ['attachments/0/content: expected base64, got "!"']],
  [
    compositionShape,
    { ...mail, attachments: [{ name: 'a', type: 'x', content: '' }] },
    ['attachments/0/type: expected a media type such as text/plain, got "x"'],
  ],
  [compositionShape, { ...mail, envelope: { from: '', to: [] } }, ['envelope/to: expected at least 1 item, got an empty array']],
  [compositionShape, { ...mail, partial: 'yes' }, ['partial: expected true or false, got "yes"']],
  [compositionShape, {}, ['from: missing, expected a string']],
  [envelopeQuery, { partial: 'yes' }, ['partial: expected "true" or "false", got "yes"']],
  [envelopeQuery, { envid: 'a b' }, ['envid: expected 1 to 100 printable characters of ASCII, without blanks, got "a b"']],
  [
    operationRequestShape,
    { ...filter, operation: 'remove' },
    [expect.stringMatching(/^operation: expected "flush", .* or "reclass", got "remove"$/)],
  ],
  [operationRequestShape, { ...filter, selection: {} }, ['selection/kind: missing, expected "ids" or "filter"']],
  [operationRequestShape, { ...filter, selection: { kind: 7 } }, ['selection/kind: expected "ids" or "filter", got 7']],
  [operationRequestShape, { operation: 'hold' }, ['selection: missing, expected an object']],
  [operationRequestShape, { plan: 5 }, ['plan: expected a string, got 5']],
  [operationRequestShape, 7, [': expected an object, got 7']],
  [
    operationRequestShape,
    { ...filter, selection: { kind: 'filter', filter: { older_than: 'soon', attempts_over: 0.5 } } },
    [
      'selection/filter/older_than: expected a time such as 30m, 2h or 1d, got "soon"',
      'selection/filter/attempts_over: expected a whole number, got 0.5',
    ],
  ],
  [newTokenBody, { name: 'a b', role: 'viewer' }, ['name: expected 1 to 64 letters, digits or any of ._@+-, got "a b"']],
  [newTokenBody, { name: 'a', role: 'viewer', expires_in: 0 }, ['expires_in: expected more than 0, got 0']],
  [z.strictObject({ hash: z.string().regex(/^[0-9a-f]+$/) }), { hash: 'dfd_x' }, ['hash: expected a text that matches /^[0-9a-f]+$/']],
])('the errors of a value, %#', (shape, value, expected) => {
  expect(errors(shape, value)).toEqual(expected)
})

test('a value that fits is returned as its shape has it', () => {
  expect(checkValue(limit, { limit: '7' })).toEqual({ ok: true, value: { limit: 7 } })
})
