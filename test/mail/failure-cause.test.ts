import { expect, test } from 'vitest'
import { causeOf, shownCause } from '../../src/mail/failure-cause.ts'
import { threadTime } from '../support/thread-time.ts'

const reply = (text: string) => causeOf({ reply: text, reason: '' })

test.each([
  ['450 4.2.1 The user is busy', '450 4.2.1 The user is busy'],
  [
    '421 4.7.28 [192.0.2.7] Our system has detected an unusual rate of mail from 192.0.2.7. 41be03b00d2f7-7db98si12 - gsmtp',
    '421 4.7.28 [{ip}] Our system has detected an unusual rate of mail from {ip}. {id} - gsmtp',
  ],
  ['451 4.7.1 Greylisted for 300 seconds, see http://grey.example/?ip=1', '451 4.7.1 Greylisted for {n} seconds, see {url}'],
  ['452 4.2.2 <ann@far.example>: mailbox full (120 of 100 MB)', '452 4.2.2 <{address}>: mailbox full ({n} of {n} MB)'],
  ['450 4.1.8 <x@y.example>: Sender address rejected', '450 4.1.8 <{address}>: Sender address rejected'],
  ['421 mx7.mail.example Service busy [2001:db8::25]', '421 {host} Service busy [{ip}]'],
  ['421-4.7.0 too many 421 4.7.0 connections', '421-4.7.0 too many {n} {n}.{n}.{n} connections'],
  ['454 4.7.0 TLSv1.2 is required', '454 4.7.0 TLSv{n}.{n} is required'],
  ['450', '450'],
  ['450 4.3.0 Zustellung später, Nachricht A1B2C3D4E5 (Größe)', '450 4.3.0 Zustellung später, Nachricht {id} (Größe)'],
])('%s', (text, cause) => {
  expect(reply(text)).toBe(cause)
})

test('without a reply, the reason is the cause', () => {
  const reason = 'connect to mx.far.example[192.0.2.1]:25: Connection refused'
  expect(causeOf({ reason })).toBe('connect to mx.far.example[{ip}]:{n}: Connection refused')
})

test('a cause is bounded, and hostile text takes no time', () => {
  expect(reply(`450 ${'long text '.repeat(500)}`)).toHaveLength(239)
  for (const text of ['1.'.repeat(50_000), 'a@'.repeat(50_000), ':'.repeat(50_000), '{n}'.repeat(9_000), 'a1.'.repeat(30_000)]) {
    const begin = threadTime()
    reply(text)
    expect(threadTime() - begin).toBeLessThan(200)
  }
})

test('a long cause is not cut within a placeholder', () => {
  for (let length = 200; length < 245; length++) {
    const cause = causeOf({ reply: `421 ${'x'.repeat(length)} https://a.example/1 and more words behind it`, reason: '' })
    expect(shownCause(cause)).not.toMatch(/[{}]/)
  }
})
