/** Keys under which access tables are searched (Postfix access(5)). */
import { expect, test } from 'vitest'
import { addressForms, clientForms } from '../../src/access/lookup-forms.ts'
import type { ExtensionRules, LookupForm } from '../../src/rewriting/address-keys.ts'

const delimitedBy = (delimiters: string): ExtensionRules => ({ delimiters, whole: new Set(['postmaster']) })

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
  expect(keys(addressForms('ann+news@sub.b.example', delimitedBy('+')))).toEqual([
    '=ann+news@sub.b.example',
    'ann@sub.b.example',
    'sub.b.example',
    'b.example',
    'example',
    'ann+news@',
    'ann@',
  ])
  expect(keys(addressForms('ann+news@b.example', delimitedBy('')))).toEqual(['=ann+news@b.example', 'b.example', 'example', 'ann+news@'])
  expect(keys(addressForms('ann@[192.0.2.1]', delimitedBy('+')))).toEqual(['=ann@[192.0.2.1]', '[192.0.2.1]', 'ann@'])
  expect(keys(addressForms('+x@b.example', delimitedBy('+')))[1]).toBe('b.example')
})

test('the null sender is searched as <>', () => {
  expect(keys(addressForms('', delimitedBy('+')))).toEqual(['=<>'])
})

test('a local part that needs quotes is searched with them and then without', () => {
  expect(keys(addressForms('"a b+x"@c.example', delimitedBy('+')))).toEqual([
    '="a b+x"@c.example',
    '=a b+x@c.example',
    '"a b"@c.example',
    'a b@c.example',
    'c.example',
    'example',
    '"a b+x"@',
    'a b+x@',
    '"a b"@',
    'a b@',
  ])
})

test('names that mail servers use have no extension', () => {
  expect(keys(addressForms('owner-list@c.example', delimitedBy('-')))).not.toContain('owner@c.example')
  expect(keys(addressForms('postmaster@c.example', delimitedBy('m')))).not.toContain('post@c.example')
})
