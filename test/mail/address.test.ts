import { expect, test } from 'vitest'
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
