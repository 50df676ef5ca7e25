import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addressesIn } from '../../src/mail/address-list.ts'
import { threadTime } from '../support/thread-time.ts'

const read = (list: string) => addressesIn(list).map(({ address, text }) => address ?? `malformed: ${text}`)

describe('address lists', () => {
  test.each([
    ['root, admin@far.test', ['root', 'admin@far.test']],
    ['Ann <a@x.test> Bob <b@x.test>', ['a@x.test', 'b@x.test']],
    ['"Ann, A." <a@x.test> (Accounts), b@x.test', ['a@x.test', 'b@x.test']],
    ['Staff: Ann <a@x.test>, root;, c@x.test', ['a@x.test', 'root', 'c@x.test']],
    ['undisclosed-recipients:;', []],
    ['<>', []],
    ['<@relay.test,@other.test:a@x.test>', ['a@x.test']],
    ['"a b\\"c"@x.test', ['"a b\\"c"@x.test']],
    ['a@[IPv6:2001:db8::1]', ['a@[IPv6:2001:db8::1]']],
    ['"Ann <a@x.test>, b@x.test', ['malformed: "Ann <a@x.test>, b@x.test']],
    ['<a@x.test, b@x.test>', ['malformed: a@x.test,b@x.test']],
    ['ok@x.test, <a b@x.test>', ['ok@x.test', 'malformed: ab@x.test']],
  ])('%s', (list, addresses) => {
    expect(read(list)).toEqual(addresses)
  })

  test('any list of valid addresses is read whole, whatever separates and names them', () => {
    const address = fc
      .tuple(fc.stringMatching(/^[a-z0-9+=-]{1,8}$/), fc.stringMatching(/^[a-z]{1,8}\.test$/))
      .map((parts) => parts.join('@'))
    const entry = fc.tuple(address, fc.constantFrom('', 'Ann', '"Ann, (A)"', 'Ann Q. Public', '(comment; <x@y>)'))
    const separator = fc.constantFrom(',', ', ', ' ,\t', ';', ',,')
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 8 }), separator, (entries, between) => {
        const list = entries.map(([one, name]) => `${name} <${one}>`).join(between)
        expect(read(list)).toEqual(entries.map(([one]) => one))
      }),
    )
  })

  test.each(['(', '<', '>', '"a" ', 'a:', ';', '<a', ',', 'a ', '[a]', '\\', '@'])('128 kB of %j take less than a second', (text) => {
    const started = threadTime()
    addressesIn(text.repeat(Math.ceil(2 ** 17 / text.length)))
    expect(threadTime() - started).toBeLessThan(1_000)
  })
})
