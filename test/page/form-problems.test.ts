/** Sentences about mistakes in forms: they name the fields as the form does. */
import { expect, test } from 'vitest'
import { checkBox, choice, field, problemText } from '../../src/page/markup/fields.ts'

const FIELDS = [
  field({ name: 'scope', label: 'Sender domain, or * for all', value: '' }),
  field({ name: 'not_before', label: 'No delivery before (UTC)', value: '' }),
  choice('Reason', 'reason', '', []),
  checkBox('Permit private addresses, and http://', 'allow_private', false),
]

test('a field has its label without the hint', () => {
  expect(problemText(FIELDS, { name: 'scope', detail: 'expected * or a sender domain' })).toBe(
    'Sender domain: expected * or a sender domain.',
  )
  expect(problemText(FIELDS, { name: 'reason', detail: 'missing' })).toBe('Reason: missing.')
})

test('another field that the sentence names has its label, the text that was typed stays', () => {
  const detail = 'needs allow_private (--allow-private) or not_before, not no_field, got "allow_private \\" not_before"'
  expect(problemText(FIELDS, { name: 'scope', detail })).toBe(
    'Sender domain: needs “Permit private addresses” or “No delivery before”, not no_field, got "allow_private \\" not_before".',
  )
})

test('a value that the form does not have keeps its name, a sentence stays', () => {
  expect(problemText(FIELDS, { name: 'node_name', detail: 'expected a name' })).toBe('Node name: expected a name.')
  expect(problemText(FIELDS, { name: '', detail: 'expected an object' })).toBe('Expected an object.')
  expect(problemText(FIELDS, 'scope is missing')).toBe('scope is missing')
})
