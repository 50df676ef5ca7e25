import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Lookup } from '../../../src/system/net.ts'
import { announcementIn, InvalidPolicy, namesExchanger, parsePolicy } from '../../../src/delivery/sts/sts-record.ts'

const found = (...records: readonly string[]): Lookup<string> => ({ kind: 'found', records })

describe('the TXT record', () => {
  test.each<[string, readonly string[], string | null]>([
    ['announces an id', ['v=STSv1; id=20261101T000000;'], '20261101T000000'],
    ['may have no semicolon at its end', ['v=STSv1;id=a'], 'a'],
    ['may have blanks and other fields', ['v=STSv1 ; x=y; id = b1 ; id=c'], 'b1'],
    ['of another kind is skipped', ['v=spf1 -all', 'v=STSv1; id=1;'], '1'],
    ['of another version is none', ['v=STSv2; id=1;'], null],
    ['without the version first is none', ['id=1; v=STSv1;'], null],
    ['that only begins alike is none', ['v=STSv10; id=1;'], null],
  ])('%s', (_, records, id) => {
    expect(announcementIn(found(...records))).toEqual(id === null ? { kind: 'none' } : { kind: 'id', id })
  })

  const NO_ID = 'it has no id of 1 to 32 letters and digits'
  test.each<[string, readonly string[], string]>([
    ['without an id', ['v=STSv1;'], NO_ID],
    ['with a malformed id', ['v=STSv1; id=a-b;'], NO_ID],
    ['with an id of 33 characters', [`v=STSv1; id=${'a'.repeat(33)};`], NO_ID],
    ['twice', ['v=STSv1; id=1;', 'v=STSv1; id=1;'], 'there are 2 records, which count as none'],
  ])('%s cannot be used', (_, records, reason) => {
    expect(announcementIn(found(...records))).toEqual({ kind: 'invalid', reason })
  })

  test('that does not exist is none, and a failed look-up is a failure', () => {
    expect(announcementIn({ kind: 'none', nxdomain: true })).toEqual({ kind: 'none' })
    expect(announcementIn({ kind: 'failed', soft: true, reason: 'SERVFAIL' })).toEqual({ kind: 'failed', reason: 'SERVFAIL' })
  })
})

const POLICY = 'version: STSv1\r\nmode: enforce\r\nmx: mx.example.com\r\nmx: *.example.net\r\nmax_age: 86400\r\n'

describe('a policy', () => {
  test.each<[string, string, object]>([
    ['with CRLF', POLICY, { mode: 'enforce', mx: ['mx.example.com', '*.example.net'], maxAge: 86_400_000 }],
    [
      'with LF, unknown keys and blanks',
      'version:STSv1\nx-y: z\nmode:\ttesting \nmx:MX.Example.COM.\nmax_age: 0',
      { mode: 'testing', mx: ['mx.example.com'], maxAge: 0 },
    ],
    ['with repeated keys, of which the first counts', `${POLICY}mode: none\r\nmax_age: 1\r\n`, { mode: 'enforce', maxAge: 86_400_000 }],
    ['of mode none without mx', 'version: STSv1\nmode: none\nmax_age: 60\n', { mode: 'none', mx: [], maxAge: 60_000 }],
    [
      'with a name of U-labels',
      'version: STSv1\nmode: enforce\nmx: *.bücher.example\nmax_age: 31557600\n',
      { mx: ['*.xn--bcher-kva.example'] },
    ],
  ])('%s', (_, text, expected) => expect(parsePolicy(text)).toMatchObject(expected))

  test.each<[string, string]>([
    ['is empty', ''],
    ['lacks the version', POLICY.replace(/version.*\r\n/, '')],
    ['has another version', POLICY.replace('STSv1', 'STSv2')],
    ['has an unknown mode', POLICY.replace('enforce', 'report')],
    ['lacks max_age', POLICY.replace(/max_age.*\r\n/, '')],
    ['has a negative max_age', POLICY.replace('86400', '-1')],
    ['has a max_age above a year', POLICY.replace('86400', '31557601')],
    ['has no mx', POLICY.replaceAll(/mx:.*\r\n/g, '')],
    ['has a misspelt mx only', POLICY.replaceAll('mx:', 'nmx:')],
    ['has a wildcard within a label', POLICY.replace('*.example.net', 'm*.example.net')],
    ['has two wildcards', POLICY.replace('*.example.net', '*.*.net')],
    ['has a bare wildcard', POLICY.replace('*.example.net', '*')],
    ['has a wildcard of a top-level domain', POLICY.replace('*.example.net', '*.net')],
    ['has an mx with a port', POLICY.replace('mx.example.com', 'mx.example.com:25')],
    ['is a page', '<html>\n<body>404</body>\n</html>\n'],
  ])('that %s is not valid', (_, text) => expect(() => parsePolicy(text)).toThrow(InvalidPolicy))

  test('of any text is read, or refused with InvalidPolicy', () => {
    const key = fc.constantFrom('version', 'mode', 'mx', 'max_age', 'x', '')
    const value = fc.oneof(fc.constantFrom('STSv1', 'enforce', 'testing', 'none', '*.a.b', 'a.b', '60'), fc.string({ unit: 'binary' }))
    const line = fc.tuple(key, fc.constantFrom(':', ': ', ' ', ''), value).map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), fc.constantFrom('\n', '\r\n'), (lines, end) => {
        try {
          const { mode, mx, maxAge } = parsePolicy(lines.join(end))
          expect(maxAge >= 0 && maxAge <= 31_557_600_000).toBe(true)
          expect(mode === 'none' || mx.length > 0).toBe(true)
          for (const pattern of mx) expect(pattern).toMatch(/^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/)
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidPolicy)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

test.each([
  ['mx.example.com', true],
  ['MX.example.com.', true],
  ['a.example.net', true],
  ['a.b.example.net', false],
  ['example.net', false],
  ['evilexample.net', false],
  ['mx.example.com.evil.example', false],
  ['bücher.example.net', true],
  ['', false],
])('the patterns name the exchanger %j: %s', (host, expected) => {
  expect(namesExchanger(['mx.example.com', '*.example.net'], host)).toBe(expected)
})
