import { describe, expect, test } from 'vitest'
import { formatReply, isEnhancedStatus, maskControls, parseReply, statusOf } from '../../src/mail/smtp-reply.ts'

describe('a reply', () => {
  test.each([
    ['450 4.2.1 busy', { code: 450, status: '4.2.1', text: 'busy' }],
    ['250 Ok', { code: 250, status: undefined, text: 'Ok' }],
    ['250', { code: 250, status: undefined, text: '' }],
    ['550-5.1.1 no', { code: 550, status: '5.1.1', text: 'no' }],
    ['550 5.1.1', { code: 550, status: '5.1.1', text: '' }],
    ['550 5.1.1x', { code: 550, status: undefined, text: '5.1.1x' }],
  ])('%j is parsed', (text, reply) => expect(parseReply(text)).toEqual(reply))

  test.each(['', '25', 'busy', '2500 x', '250x'])('%j is not one', (text) => expect(parseReply(text)).toBeUndefined())

  test.each([
    [{ code: 450, status: '4.2.1', text: 'busy' }, '450 4.2.1 busy'],
    [{ code: 250, text: '' }, '250'],
  ])('%j is formatted', (reply, text) => expect(formatReply(reply)).toBe(text))
})

test.each([
  [450, '4.2.1', '4.2.1'],
  [450, '5.1.1', '4.0.0'],
  [550, undefined, '5.0.0'],
  [250, '2.1.5', '2.1.5'],
  [354, undefined, '4.5.0'],
  [999, '9.9.9', '4.5.0'],
])('the status of %i with %s is %s', (code, status, expected) => expect(statusOf({ code, status, text: '' })).toBe(expected))

test.each([
  ['5.1.1', true],
  ['4.999.0', true],
  ['3.1.1', false],
  ['5.1', false],
  ['5.1.1000', false],
])('%s is an enhanced status code: %s', (text, is) => expect(isEnhancedStatus(text)).toBe(is))

test('control characters are masked, other scripts are not', () => {
  expect(maskControls('a\r\n\0\u001b[2J\u007f\u0085\u2028\u202eü漢')).toBe('a????[2J????ü漢')
})
