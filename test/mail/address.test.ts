import { expect, test } from 'vitest'
import { parseAddress, parsePath } from '../../src/mail/address-path.ts'
import { domainMatches, domainOf, isInternational, lookupKeys, normalizeAddress, unbracket } from '../../src/mail/address.ts'

test.each([
  ['Ann@FAR.Example', 'far.example', 'Ann@far.example'],
  ['"a@b"@FAR.example', 'far.example', '"a@b"@far.example'],
  ['ann@[IPv6:2001:DB8::1]', '[ipv6:2001:db8::1]', 'ann@[ipv6:2001:db8::1]'],
  ['Postmaster', '', 'Postmaster'],
  ['', '', ''],
])('%j has the domain %j and the normal form %j', (address, domain, normal) => {
  expect([domainOf(address), normalizeAddress(address)]).toEqual([domain, normal])
})

test.each([
  ['[127.0.0.1]', '127.0.0.1'],
  ['[IPv6:::1]', '::1'],
  ['[hub.example]', 'hub.example'],
  ['hub.example', 'hub.example'],
  ['[hub', '[hub'],
])('%s without brackets is %s', (host, plain) => expect(unbracket(host)).toBe(plain))

test.each([
  ['a.example', 'a.example', true],
  ['b.a.example', 'a.example', false],
  ['b.a.example', '.a.example', true],
  ['a.example', '.a.example', false],
  ['ba.example', '.a.example', false],
])('%s matches %s: %s', (domain, pattern, matches) => expect(domainMatches(domain, pattern)).toBe(matches))

test('look-up keys are the domain, its parents longest first, and *', () => {
  expect([...lookupKeys('a.b.example')]).toEqual(['a.b.example', '.b.example', '.example', '*'])
  expect([...lookupKeys('localhost')]).toEqual(['localhost', '*'])
})

test('an address outside ASCII needs SMTPUTF8', () => {
  expect(['ann@far.example', 'ü@far.example', 'ann@bücher.example'].map(isInternational)).toEqual([false, true, true])
})

test.each([
  ['"boss"@us.test', 'boss@us.test'],
  [String.raw`"bo\ss"@us.test`, 'boss@us.test'],
  ['"boss+x"@US.test', 'boss+x@us.test'],
  ['"a.b"@us.test', 'a.b@us.test'],
  ['"a%b"@us.test', 'a%b@us.test'],
  ['"é"@us.test', 'é@us.test'],
  ['"a b"@us.test', '"a b"@us.test'],
  [String.raw`"a\ b"@us.test`, '"a b"@us.test'],
  ['a..b@us.test', '"a..b"@us.test'],
  ['"a..b"@us.test', '"a..b"@us.test'],
  ['.a@us.test', '".a"@us.test'],
  ['a@b@us.test', '"a@b"@us.test'],
  [String.raw`"a\@b"@us.test`, '"a@b"@us.test'],
  [String.raw`"a\"b\\c"@us.test`, String.raw`"a\"b\\c"@us.test`],
  ['" "@us.test', '" "@us.test'],
  ['""@us.test', '""@us.test'],
  ['@relay.test:"boss"@us.test', 'boss@us.test'],
  ['"boss"', 'boss@origin.test'],
  ['"a@b"', '"a@b"@origin.test'],
])('%s has the normal form %s in an envelope', (path, normal) => {
  expect(parseAddress(path, 'origin.test')).toBe(normal)
  expect(parseAddress(normal, 'origin.test'), 'the normal form of a normal form').toBe(normal)
})

test('the address as given has no domain that was appended', () => {
  expect(parsePath('"root"', 'origin.test')).toEqual({ address: 'root@origin.test', given: 'root' })
  expect(parsePath('"a b"', 'origin.test')).toEqual({ address: '"a b"@origin.test', given: '"a b"' })
  expect(parsePath('root@US', 'origin.test')).toEqual({ address: 'root@us', given: 'root@us' })
})

test('a pattern of a filter is not changed but for needless quotes', () => {
  const patterns = ['*@us.test', '"bo*"@us.test', '*" "*', '*"@us.test', '"bo*', 'ann@*', '*', '']
  expect(patterns.map(normalizeAddress)).toEqual(['*@us.test', 'bo*@us.test', '*" "*', '*"@us.test', '"bo*', 'ann@*', '*', ''])
})
