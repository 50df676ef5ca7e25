import { expect, test } from 'vitest'
import { pseudonymOf } from '../../src/mail/pseudonym.ts'
import { ToldAddresses, type AddressForm } from '../../src/mail/told-addresses.ts'

function told(form: AddressForm, key: string | null = 'key'): ToldAddresses {
  const addresses = new ToldAddresses()
  addresses.change(form, key)
  return addresses
}

const ANNA = pseudonymOf('key', 'anna@example.com')
const LINE = 'B1: to=<Anna@example.com>, relay=none, status=deferred (host mx[192.0.2.1] said: 450 anna@example.com is busy)'

test('equal addresses of a line have equal texts, or their domain', () => {
  expect(told('full').line(LINE)).toBe(LINE)
  expect(told('hashed').line(LINE)).toBe(LINE.replaceAll(/anna@example\.com/gi, ANNA))
  expect(told('domain').line(LINE)).toBe(LINE.replaceAll(/anna@/gi, '***@'))
})

test('a login has the text of its address, and its name stays', () => {
  const line = 'B1: client=c[192.0.2.1], sasl_method=PLAIN, sasl_username=anna@example.com'
  expect(told('hashed').line(line)).toBe(line.replace('anna@example.com', ANNA))
  expect(told('domain').line(line)).toBe(line.replace('anna@', '***@'))
})

test('a return path does not tell the address that it holds', () => {
  expect(told('domain').line('B1: from=<news+anna=example.com@lists.example>')).toBe('B1: from=<***@lists.example>')
})

test('Message-IDs stay', () => {
  expect(told('domain').line('B1: message-id=<1@host.example>')).toBe('B1: message-id=<1@host.example>')
  expect(told('domain').value({ message_id: '<1@host.example>', recipients: ['anna@example.com'], size: 3, uid: null })).toEqual({
    message_id: '<1@host.example>',
    recipients: ['***@example.com'],
    size: 3,
    uid: null,
  })
})

test('without a key, hashed gives the domain; a key is kept by a change without one', () => {
  expect(told('hashed', null).line('<anna@example.com>')).toBe('<***@example.com>')
  const addresses = told('hashed')
  addresses.change('domain', null)
  addresses.change('hashed', null)
  expect(addresses.line('<anna@example.com>')).toBe(`<${ANNA}>`)
})
