/** XFORWARD of authorized clients: the origin of the next message, for the log (Postfix XFORWARD_README). */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { neutered, parseXforward } from '../../src/smtpd/dialogue/client-attributes.ts'
import { openSmtpd, OUTSIDER, type SmtpdHarness } from '../support/smtpd-harness.ts'

const FILTER = '10.0.0.3'
const AUTHORIZED = { smtpd_authorized_xforward_hosts: [`${FILTER}/32`], mynetworks: [`${FILTER}/32`] }
const MESSAGE = ['MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>', 'DATA', 'Subject: x', '', 'x', '.']

/** The description of each message that the intake has recorded. */
const upstreamOf = ({ intake }: SmtpdHarness) => intake.taken.map((entry) => ('upstream' in entry ? entry.upstream : undefined))

test('EHLO announces XFORWARD to authorized clients only, and not when it is discarded', async () => {
  const { connect } = await openSmtpd(AUTHORIZED)
  expect(await (await connect(FILTER)).say('EHLO x')).toContain('250-XFORWARD NAME ADDR PROTO HELO SOURCE PORT IDENT\r\n')
  const outsider = await connect(OUTSIDER)
  expect(await outsider.say('EHLO x')).not.toContain('XFORWARD')
  expect(await outsider.say('XFORWARD ADDR=127.0.0.1')).toBe('550 5.7.0 Error: insufficient authorization')
  const silent = await openSmtpd({ ...AUTHORIZED, smtpd_discard_ehlo_keywords: ['xforward'] })
  const client = await silent.connect(FILTER)
  expect(await client.say('EHLO x')).not.toContain('XFORWARD')
  expect(await client.say('XFORWARD ADDR=127.0.0.1')).toMatch(/^550 /)
})

test('a description by several commands counts for one message; trace and permission are those of the connection', async () => {
  const world = await openSmtpd(AUTHORIZED)
  const client = await world.connect(FILTER)
  await client.say('EHLO x', `XFORWARD NAME=spike.example ADDR=${OUTSIDER}`)
  expect(await client.say('XFORWARD PROTO=ESMTP HELO=spike IDENT=4dhRlh0000z1')).toBe('250 2.0.0 Ok')
  expect(await client.say(...MESSAGE)).toMatch(/^250 /)
  expect(await client.say(...MESSAGE)).toMatch(/^250 /)
  expect(upstreamOf(world)).toEqual([{ client: { name: 'spike.example', address: OUTSIDER }, queueId: '4dhRlh0000z1' }, undefined])
  expect(world.intake.taken[0]?.text).toMatch(/^Received: from x \(unknown \[10\.0\.0\.3\]\)\r\n/)
})

test.each(['RSET', 'EHLO x', 'HELO x'])('%s ends a description', async (command) => {
  const world = await openSmtpd(AUTHORIZED)
  const client = await world.connect(FILTER)
  await client.say('EHLO x', `XFORWARD ADDR=${OUTSIDER}`, command, ...MESSAGE)
  expect(upstreamOf(world)).toEqual([undefined])
})

test.each([
  ['PORT=25', { client: { name: 'unknown', address: 'unknown' } }],
  ['NAME=[UNAVAILABLE] ADDR=IPV6:2001:DB8::1', { client: { name: 'unknown', address: '2001:db8::1' } }],
  ['IDENT=a+20b', { queueId: 'a?b' }],
  ['IDENT=[UNAVAILABLE]', {}],
])('XFORWARD %s', async (attributes, upstream) => {
  const world = await openSmtpd(AUTHORIZED)
  const client = await world.connect(FILTER)
  await client.say('EHLO x', `XFORWARD ${attributes}`, ...MESSAGE)
  expect(upstreamOf(world)).toEqual([upstream])
})

test('SOURCE decides whether missing header fields are added', async () => {
  const { connect, intake } = await openSmtpd({ ...AUTHORIZED, relay_domains: ['far.example'] })
  const client = await connect(FILTER)
  await client.say('EHLO x')
  for (const source of ['REMOTE', 'local', '[UNAVAILABLE]']) await client.say(`XFORWARD SOURCE=${source}`, ...MESSAGE)
  expect(await client.say('XFORWARD SOURCE=x')).toBe('501 5.5.4 Bad SOURCE syntax: x')
  expect(intake.taken.map(({ original }) => original.includes('Message-Id: '))).toEqual([false, true, true])
})

test('after XCLIENT, the permission is still that of the connection', async () => {
  const { connect } = await openSmtpd({ ...AUTHORIZED, smtpd_authorized_xclient_hosts: [`${FILTER}/32`] })
  const client = await connect(FILTER)
  expect(await client.say('EHLO x', `XCLIENT ADDR=${OUTSIDER}`, 'EHLO x', 'XFORWARD PORT=1')).toBe('250 2.0.0 Ok')
})

test('attributes of wild input are refused in one line, or safe for log lines', () => {
  const names = fc.constantFrom('NAME', 'ADDR', 'PROTO', 'HELO', 'SOURCE', 'PORT', 'IDENT', 'FOO', '')
  const values = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.constantFrom('[UNAVAILABLE]', '+0D+0A', '+', 'IPV6:::1', '1.2.3.4', 'LOCAL', '25', '+C3', '='),
  )
  const pair = fc.tuple(names, values, values).map(([name, one, two]) => `${name}=${one}${two}`)
  fc.assert(
    fc.property(fc.array(pair, { minLength: 1, maxLength: 4 }), (pairs) => {
      const parsed = parseXforward(pairs.join(' '))
      if ('refusal' in parsed) {
        expect(parsed.refusal.code).toBe(501)
        expect(parsed.refusal.text).not.toMatch(/\p{Cc}/u)
        return
      }
      const { name = '', address = '', id = '' } = parsed.value
      for (const text of [name, address, id]) {
        expect(text).not.toMatch(/\p{Cc}/u)
        expect(neutered(text)).toBe(text)
      }
    }),
    { numRuns: 2000 },
  )
})
