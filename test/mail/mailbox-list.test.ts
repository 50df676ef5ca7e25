import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mailboxesIn, parseMailbox } from '../../src/mail/mailbox-list.ts'

test.each([
  ['a@x.test', ['a@x.test']],
  [' Ann <a@x.test>,b@x.test ', ['a@x.test', 'b@x.test']],
  ['"Ann, A." <a@x.test> (Accounts; all), b@x.test', ['a@x.test', 'b@x.test']],
  ['Staff: Ann <a@x.test>, b@x.test;, c@x.test', ['a@x.test', 'b@x.test', 'c@x.test']],
  ['<@relay.test,@other.test:a@x.test>', ['a@x.test']],
  ['"a b\\"c"@x.test', ['"a b\\"c"@x.test']],
  ['a@[IPv6:2001:db8::1]', ['a@[IPv6:2001:db8::1]']],
  ['', []],
  [' , ,', []],
  ['undisclosed-recipients:;', []],
  ['not an address', ['not an address']],
  ['a@x.test b@x.test, c@x.test', ['a@x.test b@x.test', 'c@x.test']],
  ['Ann <a@x.test> Bob <b@x.test>', ['Ann <a@x.test> Bob <b@x.test>']],
  ['a@x.test; b@x.test', ['a@x.test; b@x.test']],
  ['mailto:a@x.test', ['mailto:a@x.test']],
  ['A: B: a@x.test;', ['A: B: a@x.test;']],
  ['<a@x.test, b@x.test', ['<a@x.test, b@x.test']],
  ['"Ann <a@x.test>, b@x.test', ['"Ann <a@x.test>, b@x.test']],
  ['(a), <>', ['(a)', '<>']],
])('the addresses of %j', (list, addresses) => {
  expect(mailboxesIn(list)).toEqual(addresses)
})

test.each([
  ['ann@Example.NET', 'ann@example.net'],
  ['"a@b"@x.test', '"a@b"@x.test'],
  ['Postmaster', 'Postmaster@relay.example'],
  ['root', undefined],
  ['a@b@x.test', undefined],
  ['not an address', undefined],
  ['Ann <a@x.test>', undefined],
  ['a@', undefined],
  ['@x.test', undefined],
  ['', undefined],
])('the mailbox %j', (text, address) => {
  expect(parseMailbox(text, 'relay.example')).toBe(address)
})

test('words do not become recipients, whatever is around them', () => {
  const piece = fc.constantFrom('a@x.test', 'word', ' ', ',', ';', ':', '<', '>', '"', '(', ')', '[', ']', '@', '\\', '.', '\r\n')
  const list = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))
  fc.assert(
    fc.property(list, (text) => {
      const valid = mailboxesIn(text).filter((one) => parseMailbox(one, 'relay.example') !== undefined)
      expect(valid.length).toBeLessThan(text.split('@').length)
    }),
    { numRuns: 1_000 },
  )
})
