import { expect, test } from 'vitest'
import { parseTexthash } from '../../src/rewriting/texthash.ts'

const FILE = `# comment
ann@a.test   x@y.test

Bob@a.test
   z@y.test,
# a comment between
   w@y.test  
"a b"@a.test ab@y.test
"a\\" b"@a.test	quoted@y.test
alone
ann@a.test again@y.test
`

test('entries of a file, with continued lines, comments and quoted keys', () => {
  const { entries, ignored } = parseTexthash(FILE)
  expect(Object.fromEntries(entries)).toEqual({
    'ann@a.test': 'x@y.test',
    'bob@a.test': 'z@y.test,   w@y.test',
    '"a b"@a.test': 'ab@y.test',
    '"a\\" b"@a.test': 'quoted@y.test',
  })
  expect(ignored).toEqual([
    'line 10: expected a key, a blank and a value; the line is ignored',
    'line 11: the key ann@a.test is repeated; its first line counts',
  ])
})

test('a file with CRLF line ends', () => {
  expect([...parseTexthash('a b\r\nc d\r\n').entries]).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ])
})
