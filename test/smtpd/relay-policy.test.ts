/** Clients outside mynetworks cannot relay mail unless the configuration allows it. */
import { describe, expect, test } from 'vitest'
import { openSmtpd, OUTSIDER } from '../support/smtpd-harness.ts'

const BATTERY = [
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<victim@far.example>'],
  ['MAIL FROM:<>', 'RCPT TO:<victim@far.example>'],
  ['MAIL FROM:<root@relay.example>', 'RCPT TO:<victim@far.example>'],
  ['MAIL FROM:<root>', 'RCPT TO:<victim@far.example>'],
  ['MAIL FROM:<postmaster@localhost>', 'RCPT TO:<victim@far.example>'],
  ['MAIL FROM:<spam@[127.0.0.1]>', 'RCPT TO:<victim@far.example>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<victim%far.example@relay.example>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<victim%far.example@[127.0.0.1]>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<far.example!victim@relay.example>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<far.example!victim>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<victim%far.example>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<"victim@far.example">'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<"victim@far.example"@relay.example>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<"victim%far.example"@relay.example>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<@relay.example:victim@far.example>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<@localhost,@relay.example:victim@far.example>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<victim@far.example@relay.example>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<victim@[198.51.100.7]>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:<victim@[IPv6:2001:db8::7]>'],
  ['MAIL FROM:<spam@out.example>', 'RCPT TO:victim@far.example'],
] as const

describe('an untrusted client with the default configuration', () => {
  test.each(BATTERY)('%s %s', async (mail, rcpt) => {
    const { connect, intake } = await openSmtpd()
    const client = await connect(OUTSIDER)
    await client.say('EHLO localhost', mail)
    expect(await client.say(rcpt)).toMatch(/^454 4\.7\.1 <.*>: Relay access denied$/)
    expect(await client.say('DATA')).toBe('554 5.5.1 Error: no valid recipients')
    expect(intake.taken).toEqual([])
  })
})

describe('an untrusted client with relay_domains', () => {
  const relay_domains = ['us.example']
  test.each([
    'ann@us.example',
    'ANN@US.EXAMPLE',
    'ann@sub.us.example',
    'postmaster',
    'Postmaster@relay.example',
    'double-bounce@relay.example',
  ])('%s: yes', async (address) => {
    const { connect } = await openSmtpd({ relay_domains })
    const client = await connect(OUTSIDER)
    expect(await client.say('EHLO x', 'MAIL FROM:<>', `RCPT TO:<${address}>`)).toBe('250 2.1.5 Ok')
  })

  test.each(['ann@notus.example', 'ann@us.example.evil.example', 'a%b@us.example', 'b!a@us.example', 'a@b@us.example', '"a@b"@us.example'])(
    '%s: no',
    async (address) => {
      const { connect } = await openSmtpd({ relay_domains })
      const client = await connect(OUTSIDER)
      expect(await client.say('EHLO x', 'MAIL FROM:<>', `RCPT TO:<${address}>`)).toBe(`454 4.7.1 <${address}>: Relay access denied`)
    },
  )
})

test.each(['127.0.0.1', '127.5.5.5', '::ffff:127.0.0.1', '::1'])('%s is in the default mynetworks', async (address) => {
  const { connect } = await openSmtpd()
  const client = await connect(address)
  expect(await client.say('EHLO x', 'MAIL FROM:<>', 'RCPT TO:<ann@far.example>')).toBe('250 2.1.5 Ok')
})

test.each(['128.0.0.1', '::ffff:128.0.0.1', '::2', '10.0.0.1'])('%s is not in the default mynetworks', async (address) => {
  const { connect } = await openSmtpd()
  const client = await connect(address)
  expect(await client.say('EHLO x', 'MAIL FROM:<>', 'RCPT TO:<ann@far.example>')).toMatch(/^454 4\.7\.1 /)
})

test('an invalid network is reported', async () => {
  await expect(openSmtpd({ mynetworks: ['127.0.0.0/33'] })).rejects.toThrow(
    'mynetworks: expected a network such as 192.0.2.0/24 or [2001:db8::]/32, got 127.0.0.0/33',
  )
})
