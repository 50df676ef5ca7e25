/** XCLIENT of authorized clients: another client, a new session (Postfix XCLIENT_README). */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { neutered, parseXclient } from '../../src/smtpd/dialogue/client-attributes.ts'
import { openSmtpd, OUTSIDER } from '../support/smtpd-harness.ts'

const FILTER = '10.0.0.3'
const AUTHORIZED = { smtpd_authorized_xclient_hosts: [`${FILTER}/32`, '127.0.0.1'], relay_domains: ['open.example'] }
const GREETING = '220 relay.example ESMTP Deferd'
const DENIED = '550 5.7.0 Error: insufficient authorization'
const FAR = ['MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>']

test('EHLO announces XCLIENT to authorized clients only, and not when it is discarded', async () => {
  const { connect } = await openSmtpd(AUTHORIZED)
  const line = '250-XCLIENT NAME ADDR PROTO HELO REVERSE_NAME PORT LOGIN DESTADDR DESTPORT\r\n'
  expect(await (await connect(FILTER)).say('EHLO x')).toContain(line)
  expect(await (await connect(OUTSIDER)).say('EHLO x')).not.toContain('XCLIENT')
  const silent = await openSmtpd({ ...AUTHORIZED, smtpd_discard_ehlo_keywords: ['xclient'] })
  const client = await silent.connect(FILTER)
  expect(await client.say('EHLO x')).not.toContain('XCLIENT')
  expect(await client.say(`XCLIENT ADDR=${OUTSIDER}`)).toBe(DENIED)
})

test('an unauthorized client keeps its address', async () => {
  const { connect } = await openSmtpd(AUTHORIZED)
  const client = await connect(OUTSIDER)
  expect(await client.say('EHLO x', 'XCLIENT ADDR=127.0.0.1')).toBe(DENIED)
  expect(await client.say(...FAR)).toMatch(/^454 4\.7\.1 /)
})

test('the named client counts for mynetworks, log and Received, and names no other one', async () => {
  const { connect, of, intake } = await openSmtpd(AUTHORIZED)
  const client = await connect()
  expect(await client.say('EHLO x', 'XCLIENT NAME=spike.example ADDR=IPV6:2001:DB8:0::2')).toBe(GREETING)
  expect(await client.say('XCLIENT ADDR=127.0.0.1')).toBe(DENIED)
  expect(await client.say('EHLO y', ...FAR)).toMatch(/^454 4\.7\.1 /)
  await client.say('RCPT TO:<ann@open.example>', 'DATA', 'x', '.', 'QUIT')
  expect(intake.taken[0]?.text).toMatch(/^Received: from y \(spike\.example \[IPv6:2001:db8::2\]\)\r\n/)
  const named = { name: 'spike.example', address: '2001:db8::2' }
  for (const kind of ['refused', 'disconnected'] as const) expect(of(kind)).toMatchObject([{ client: named }])
  expect(of('disconnected')[0]?.commands).toMatchObject({ xclient: [1, 2] })
})

test('the session begins again: HELO, protocol and login last only when the command names them', async () => {
  const { connect, intake } = await openSmtpd({ ...AUTHORIZED, mynetworks: [], smtpd_sasl_auth_enable: true })
  const client = await connect(FILTER)
  await client.say('EHLO x', 'XCLIENT HELO=its+2Eown PROTO=ESMTP LOGIN=ann')
  expect(await client.say(...FAR, 'DATA', 'x', '.')).toMatch(/^250 /)
  expect(intake.taken[0]).toMatchObject({ text: expect.stringMatching(/^Received: from its\.own [^]* with ESMTPA id /) })
  expect(await client.say('XCLIENT NAME=a.example')).toBe(GREETING)
  expect(await client.say(...FAR)).toMatch(/^454 4\.7\.1 /)
  await client.say('RCPT TO:<ann@open.example>', 'DATA', 'x', '.')
  expect(intake.taken[1]?.text).toMatch(/^Received: from a\.example \(a\.example \[10\.0\.0\.3\]\)[^]* with SMTP id /)
})

test('a login by XCLIENT permits nothing where clients may not log in', async () => {
  const { connect } = await openSmtpd({ ...AUTHORIZED, mynetworks: [] })
  const client = await connect(FILTER)
  expect(await client.say('EHLO x', 'XCLIENT LOGIN=ann', 'EHLO x', ...FAR)).toMatch(/^454 4\.7\.1 /)
})

test('limits count the named client; an authorized client has none', async () => {
  const { connect } = await openSmtpd({ ...AUTHORIZED, smtpd_client_connection_count_limit: 1, smtpd_client_message_rate_limit: 1 })
  const [one, two, three] = [await connect(FILTER), await connect(FILTER), await connect(FILTER)]
  expect(await one.say('EHLO x', `XCLIENT ADDR=${OUTSIDER}`)).toBe(GREETING)
  expect(await two.say('EHLO x', `XCLIENT ADDR=${OUTSIDER}`)).toMatch(/^421 4\.7\.0 .* too many connections from 203\.0\.113\.9$/)
  expect(two.closed).toBe(true)
  expect(await one.say('EHLO x', 'MAIL FROM:<a@b.example>', 'RSET', 'MAIL FROM:<a@b.example>')).toMatch(/^450 4\.7\.1 /)
  await one.say('QUIT')
  expect(await three.say('EHLO x', 'MAIL FROM:<a@b.example>', 'RSET', 'MAIL FROM:<a@b.example>')).toBe('250 2.1.0 Ok')
  expect(await three.say('RSET', `XCLIENT ADDR=${OUTSIDER}`)).toBe(GREETING)
})

test('commands in one packet with XCLIENT came before the new greeting', async () => {
  const { connect, of } = await openSmtpd(AUTHORIZED)
  const client = await connect(FILTER)
  await client.say('EHLO x')
  const answer = await client.send(`XCLIENT ADDR=${OUTSIDER}\r\nMAIL FROM:<a@b.example>\r\n`)
  expect(answer).toBe('554 5.5.0 Error: SMTP protocol synchronization\r\n')
  expect(client.closed).toBe(true)
  expect(of('client-failure')).toMatchObject([{ client: { address: OUTSIDER } }])
})

test('a bare LF counts by the named client (smtpd_forbid_bare_newline_exclusions)', async () => {
  const settings = { smtpd_forbid_bare_newline: 'reject', smtpd_forbid_bare_newline_exclusions: [`${FILTER}/32`] } as const
  const { connect } = await openSmtpd({ ...AUTHORIZED, ...settings })
  const client = await connect(FILTER)
  await client.say('EHLO x')
  expect(await client.send('NOOP\n')).toBe('250 2.0.0 Ok\r\n')
  await client.say(`XCLIENT ADDR=${OUTSIDER}`)
  expect(await client.send('NOOP\n')).toBe('550 5.5.2 relay.example Error: bare <LF> received\r\n')
})

describe('attributes', () => {
  const names = fc.constantFrom('NAME', 'ADDR', 'PROTO', 'HELO', 'REVERSE_NAME', 'PORT', 'LOGIN', 'DESTADDR', 'DESTPORT', 'FOO', 'name', '')
  const values = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.constantFrom('[UNAVAILABLE]', '[tempunavail]', '+0D+0A', '+', 'IPV6:', 'IPV6:::1', '1.2.3.4', 'ESMTP', '25', '+C3', '='),
    fc.ipV4(),
    fc.ipV6().map((address) => `IPV6:${address}`),
  )
  const pair = fc.tuple(names, values, values).map(([name, one, two]) => `${name}=${one}${two}`)

  test('of wild input are refused in one line, or safe for log lines and trace fields', () => {
    fc.assert(
      fc.property(fc.array(pair, { minLength: 1, maxLength: 4 }), (pairs) => {
        const parsed = parseXclient(pairs.join(' '))
        const texts =
          'refusal' in parsed ? [parsed.refusal.text] : [parsed.value.name, parsed.value.address, parsed.value.helo, parsed.value.login]
        for (const text of texts) expect(text ?? '').not.toMatch(/\p{Cc}/u)
        if ('refusal' in parsed) expect(parsed.refusal.code).toBe(501)
        else for (const text of [parsed.value.name, parsed.value.address, parsed.value.helo]) expect(neutered(text ?? '')).toBe(text ?? '')
      }),
      { numRuns: 2000 },
    )
  })

  test('in xtext are read as they were written', () => {
    const xtext = (text: string): string => [...Buffer.from(text)].map((octet) => `+${octet.toString(16).padStart(2, '0')}`).join('')
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'Z', '+', '=', '.', '-', 'ä', '€', '7'), minLength: 1, maxLength: 20 }),
        (login) => {
          expect(parseXclient(`LOGIN=${xtext(login)}`)).toEqual({ value: { login } })
        },
      ),
    )
  })
})
