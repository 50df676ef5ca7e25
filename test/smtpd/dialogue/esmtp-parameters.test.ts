import { expect, test } from 'vitest'
import { rcptCommand } from '../../../src/delivery/smtp/envelope-commands.ts'
import type { LeasedRecipient } from '../../../src/mail/message.ts'
import { parseRecipientParameters } from '../../../src/smtpd/dialogue/esmtp-parameters.ts'

const DSN = new Map([['DSN', '']])

/** The parameters of RCPT as they are sent on after they were received. */
function passedOn(parameters: string): string {
  const parsed = parseRecipientParameters(parameters)
  if (!('value' in parsed)) return 'refused'
  const recipient = { address: 'a@x.example', notify: undefined, orcpt: parsed.value.orcpt } as unknown as LeasedRecipient
  return rcptCommand(recipient, DSN).replace('RCPT TO:<a@x.example> ', '')
}

test.each([
  ['ASCII', 'ORCPT=rfc822;Ann+2Bx@old.example'],
  ['octets of UTF-8 in xtext (RFC 3461 §4)', 'ORCPT=rfc822;b+C3+A4r@old.example'],
  ['the 7-bit form of a utf-8 address (RFC 6533 §3)', String.raw`ORCPT=utf-8;b\x{E4}r@old.example`],
])('an original recipient in %s is passed on as it was received', (_form, parameters) => {
  expect(passedOn(parameters)).toBe(parameters)
})

test('an original recipient with raw UTF-8 is passed on in its 7-bit form', () => {
  expect(passedOn('ORCPT=utf-8;bär@old.example')).toBe(String.raw`ORCPT=utf-8;b\x{E4}r@old.example`)
})

test.each([
  ['NOTIFY=FAILURE,DELAY,FAILURE', { notify: ['failure', 'delay'] }],
  ['ORCPT=rfc822;prvs=1=bob@old.example', { orcpt: 'rfc822;prvs=1=bob@old.example' }],
])('%s is accepted, as Postfix accepts it', (parameters, value) => {
  expect(parseRecipientParameters(parameters)).toEqual({ value })
})

test('an equals sign in ORCPT is passed on in its encoded form (RFC 3461 §4)', () => {
  expect(passedOn('ORCPT=rfc822;prvs=1@old.example')).toBe('ORCPT=rfc822;prvs+3D1@old.example')
})

test.each(['NOTIFY=NEVER,NEVER', 'NOTIFY=FAILURE,', 'NOTIFY=never,delay'])('%s is refused', (parameters) => {
  expect(passedOn(parameters)).toBe('refused')
})

test.each(['ORCPT=rfc822;a+C3', 'ORCPT=rfc822;a+0D+0Ab', String.raw`ORCPT=utf-8;a\x{0D}b`])('%s is refused', (parameters) => {
  expect(passedOn(parameters)).toBe('refused')
})
