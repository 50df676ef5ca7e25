/** Actions of access tables (Postfix access(5)). */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseAccessAction } from '../../src/access/access-action.ts'

const refusal = (code: number, status: string, text: string) => ({ kind: 'refuse', refusal: { code, status, text } })

test.each([
  ['OK', { kind: 'ok' }],
  ['12345', { kind: 'ok' }],
  ['permit', { kind: 'ok' }],
  ['dunno', { kind: 'dunno' }],
  ['REJECT', refusal(554, '5.7.1', 'Access denied')],
  ['reject no, thanks', refusal(554, '5.7.1', 'no, thanks')],
  ['REJECT 5.1.8 no', refusal(554, '5.1.8', 'no')],
  ['REJECT 4.1.8 no', refusal(554, '5.1.8', 'no')],
  ['REJECT 5.1.8', refusal(554, '5.1.8', 'Access denied')],
  ['DEFER', refusal(450, '4.7.1', 'Access denied')],
  ['421 4.2.1 busy', refusal(421, '4.2.1', 'busy')],
  ['550', refusal(550, '5.7.1', 'Access denied')],
  ['DEFER_IF_PERMIT', { kind: 'defer-if-permit', refusal: { code: 450, status: '4.7.1', text: 'Service unavailable' } }],
  ['HOLD for a person', { kind: 'hold', text: 'for a person' }],
  ['DISCARD', { kind: 'discard', text: '' }],
  ['REDIRECT ann@EXAMPLE.com', { kind: 'redirect', address: 'ann@example.com' }],
  ['BCC ann@example.com', { kind: 'bcc', address: 'ann@example.com' }],
  ['PREPEND X-Seen: yes', { kind: 'prepend', field: 'X-Seen: yes' }],
  ['WARN look', { kind: 'note', level: 'warn', text: 'look' }],
] as const)('%s', (result, action) => {
  expect(parseAccessAction(result)).toEqual(action)
})

test.each([
  ['', 'an empty result is no action: write one of OK, DUNNO, REJECT'],
  ['yes', '"yes" is no action'],
  ['FILTER smtp:[127.0.0.1]', 'deferd has no content filter'],
  ['REDIRECT nobody', '"nobody" is no address; write REDIRECT user@example.com'],
  ['PREPEND no field', '"no field" is no header field; write PREPEND Name: value'],
  ['PREPEND X: a\nY: b', 'is no header field'],
])('%s is refused with a remedy', (result, message) => {
  expect(() => parseAccessAction(result)).toThrow(message)
})

test('any text is an action or an error, and a refusal has a code and a status of one class', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[45]\d\d( [245]\.\d\.\d)?( \w*)?$/)), (text) => {
      try {
        const action = parseAccessAction(text)
        if ('refusal' in action) expect(action.refusal.status.charAt(0)).toBe(String(action.refusal.code).charAt(0))
      } catch (error) {
        expect(String(error)).toMatch(/is no (?:action|address|header field)/)
      }
    }),
  )
})
