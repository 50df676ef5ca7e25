/** Keys under which access tables are searched (Postfix access(5)). */
import { expect, test } from 'vitest'
import { addressForms, clientForms, type LookupForm } from '../../src/access/lookup-forms.ts'

const keys = (forms: readonly LookupForm[]): readonly string[] => forms.map(({ key, isWhole }) => (isWhole ? `=${key}` : key))

test('a client is searched by name and parent domains, then by address and networks', () => {
  expect(keys(clientForms('mx.a.example', '192.0.2.7'))).toEqual([
    '=mx.a.example',
    'a.example',
    'example',
    '=192.0.2.7',
    '192.0.2',
    '192.0',
    '192',
  ])
  expect(keys(clientForms('unknown', '2001:db8::7'))).toEqual(['=unknown', '=2001:db8::7', '2001:db8:', '2001:db8', '2001'])
})

test('an address is searched with and without its extension, by domain and parent domains, by local part', () => {
  expect(keys(addressForms('ann+news@sub.b.example', '+'))).toEqual([
    '=ann+news@sub.b.example',
    'ann@sub.b.example',
    'sub.b.example',
    'b.example',
    'example',
    'ann+news@',
    'ann@',
  ])
  expect(keys(addressForms('ann+news@b.example', ''))).toEqual(['=ann+news@b.example', 'b.example', 'example', 'ann+news@'])
  expect(keys(addressForms('ann@[192.0.2.1]', '+'))).toEqual(['=ann@[192.0.2.1]', '[192.0.2.1]', 'ann@'])
  expect(keys(addressForms('+x@b.example', '+'))[1]).toBe('b.example')
})

test('the null sender is searched as <>', () => {
  expect(keys(addressForms('', '+'))).toEqual(['=<>'])
})
