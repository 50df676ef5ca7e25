import { describe, expect, test } from 'vitest'
import { fieldsOf, headerLength } from '../../src/mail/headers.ts'

const fields = (content: string) => [...fieldsOf(Buffer.from(content))].map(({ name, value }) => `${name}=${value}`)

describe('the fields of a content', () => {
  test.each([
    [
      'are unfolded, with names in lower case',
      'To: ann,\r\n  bob,\r\n\teve\r\nSUBJECT : hi  there \r\n\r\nCc: x\r\n',
      ['to=ann, bob, eve', 'subject=hi there'],
    ],
    ['end with the empty line', 'A: b\r\n\r\nC: d\r\n', ['a=b']],
    ['end with a line that is no field', 'A: b\r\nnot a field\r\nC: d\r\n', ['a=b']],
    ['end with the content', 'A: b', ['a=b']],
    ['may be empty', 'A:\r\nB: \r\n x\r\n', ['a=', 'b=x']],
    ['do not begin with a continuation', ' folded\r\nA: b\r\n', []],
    ['leave out mbox From lines before them', 'From ann Fri\r\n>From bob\r\nA: b\r\n', ['a=b']],
    ['may hold UTF-8 (RFC 6532)', 'Subject: Grüße\r\n\r\n', ['subject=Grüße']],
  ])('%s', (_, content, expected) => expect(fields(content)).toEqual(expected))
})

test.each([
  ['A: b\r\n\r\nbody', 6],
  ['A: b\r\nbody', 6],
  ['\r\nbody', 0],
  ['A: b\r\n', 6],
  ['', 0],
])('the header of %j has %i bytes', (content, length) => expect(headerLength(Buffer.from(content))).toBe(length))
