/** Clients outside mynetworks cannot relay mail unless the configuration allows it. */
import { describe, expect, test } from 'vitest'
import { parseTables } from '../../../src/config/values/lookup-tables.ts'
import { MINUTE } from '../../../src/system/clock.ts'
import type { Lookup, MxRecord } from '../../../src/system/net.ts'
import { openSmtpd, OUTSIDER } from '../../support/smtpd-harness.ts'

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

/** Every name has an exchanger elsewhere. */
const ELSEWHERE = {
  lookupMx: (): Lookup<MxRecord> => ({ kind: 'found', records: [{ preference: 10, exchange: 'mx.else.example' }] }),
  lookupAddresses: (_: string, family: 4 | 6): Lookup<string> =>
    family === 4 ? { kind: 'found', records: ['198.51.100.7'] } : { kind: 'none', nxdomain: false },
}
/** Every name has one address, that of this relay. */
const HERE = {
  lookupAddresses: (_: string, family: 4 | 6): Lookup<string> =>
    family === 4 ? { kind: 'found', records: ['198.51.100.1'] } : { kind: 'none', nxdomain: false },
}
const LISTENING = { smtpd_listen: ['198.51.100.1:25'] }

type Settings = Parameters<typeof openSmtpd>[0]

const replyTo = async (address: string, settings: Settings, dns: Parameters<typeof openSmtpd>[1], from = OUTSIDER): Promise<string> => {
  const { connect } = await openSmtpd(settings, dns)
  return (await connect(from)).say('EHLO x', 'MAIL FROM:<forged@client.example>', `RCPT TO:<${address}>`)
}

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
    expect(await replyTo(address, { relay_domains }, ELSEWHERE)).toBe('250 2.1.5 Ok')
  })

  test.each(['ann@notus.example', 'ann@us.example.evil.example', 'a%b@us.example', 'b!a@us.example', 'a@b@us.example', '"a@b"@us.example'])(
    '%s: no',
    async (address) => {
      expect(await replyTo(address, { relay_domains }, ELSEWHERE)).toBe(`454 4.7.1 <${address}>: Relay access denied`)
    },
  )
})

describe('mail that this relay would return is refused from strangers', () => {
  const UNKNOWN = '550 5.1.1 <ADDRESS>: Recipient address rejected: User unknown'
  const loops = (domain: string) => `550 5.4.6 <ADDRESS>: Recipient address rejected: mail for ${domain} loops back to myself`

  test.each<readonly [title: string, address: string, settings: Settings, reply: string]>([
    ['its postmaster, by default', 'postmaster@relay.example', {}, UNKNOWN],
    ['its postmaster without a domain', 'postmaster', {}, UNKNOWN],
    ['users of its name in relay_domains', 'nosuch@relay.example', { relay_domains: ['relay.example'] }, UNKNOWN],
    [
      'users of its name behind restrictions',
      'nosuch@relay.example',
      { relay_domains: ['relay.example'], smtpd_recipient_restrictions: [{ kind: 'permit', warnsOnly: false }] },
      UNKNOWN,
    ],
    ['users of another name with this relay as exchanger', 'ann@us.example', { relay_domains: ['us.example'] }, loops('us.example')],
    ['the postmaster of myorigin with this relay as exchanger', 'postmaster@us.example', { myorigin: 'us.example' }, loops('us.example')],
    [
      'an alias that leads back',
      'ann@us.example',
      { relay_domains: ['us.example'], virtual_alias_maps: parseTables('inline:{{ann@us.example = bob@us.example}}') },
      loops('us.example'),
    ],
    [
      'a transport error',
      'ann@us.example',
      { relay_domains: ['us.example'], transport_maps: new Map([['us.example', 'error:5.1.2 gone']]) },
      '550 5.1.2 <ADDRESS>: Recipient address rejected: gone',
    ],
  ])('%s', async (_, address, settings, reply) => {
    const all = { ...LISTENING, ...settings }
    expect(await replyTo(address, all, HERE)).toBe(reply.replace('ADDRESS', address))
    // Own clients get a notice, but for transports that refuse all mail.
    const own = settings?.transport_maps !== undefined ? reply.replace('ADDRESS', address) : '250 2.1.5 Ok'
    expect(await replyTo(address, all, HERE, '127.0.0.1')).toBe(own)
  })

  const RELAY_DOMAINS = { relay_domains: ['us.example', 'relay.example'] }
  test.each<readonly [title: string, address: string, settings: Settings, dns: Parameters<typeof openSmtpd>[1]]>([
    [
      'the postmaster with an alias',
      'postmaster@relay.example',
      { virtual_alias_maps: parseTables('inline:{{postmaster@relay.example = ann@far.example}}'), relayhost: ['[hub.example]'] },
      HERE,
    ],
    ['the postmaster with a route', 'postmaster@relay.example', { transport_maps: new Map([['relay.example', 'smtp:[10.0.0.9]']]) }, HERE],
    ['the postmaster behind a relayhost', 'postmaster@relay.example', { relayhost: ['[hub.example]'] }, HERE],
    ['the address of notices about notices, which is discarded', 'double-bounce@relay.example', {}, HERE],
    ['its name with another exchanger', 'ann@relay.example', RELAY_DOMAINS, ELSEWHERE],
    [
      'a domain with another server of this machine as exchanger',
      'ann@us.example',
      { ...RELAY_DOMAINS, smtpd_listen: ['198.51.100.1:2525'] },
      HERE,
    ],
    [
      'a domain whose records cannot be looked up now',
      'ann@us.example',
      RELAY_DOMAINS,
      { lookupMx: () => ({ kind: 'failed', soft: true, reason: 'SERVFAIL' }) },
    ],
    ['a discarded domain', 'ann@us.example', { ...RELAY_DOMAINS, transport_maps: new Map([['us.example', 'discard:']]) }, HERE],
  ])('but not %s', async (_, address, settings, dns) => {
    expect(await replyTo(address, { ...LISTENING, ...settings }, dns)).toBe('250 2.1.5 Ok')
  })

  test('for now while the records of its name cannot be looked up, and not for good', async () => {
    const failing = { lookupMx: (): Lookup<MxRecord> => ({ kind: 'failed', soft: true, reason: 'SERVFAIL' }) }
    expect(await replyTo('postmaster@relay.example', LISTENING, failing)).toBe(
      '450 4.4.3 <postmaster@relay.example>: Recipient address rejected: Temporary lookup failure',
    )
  })

  test('a domain is looked up once a minute', async () => {
    let lookups = 0
    const counted = () => {
      lookups++
      return ELSEWHERE.lookupMx()
    }
    const { connect, wait } = await openSmtpd({ ...LISTENING, relay_domains: ['us.example'] }, { ...ELSEWHERE, lookupMx: counted })
    const client = await connect(OUTSIDER)
    for (const user of ['ann', 'bob', 'eve'])
      expect(await client.say('EHLO x', 'MAIL FROM:<>', `RCPT TO:<${user}@us.example>`)).toMatch(/^250 /)
    expect(lookups).toBe(1)
    await wait(MINUTE)
    expect(await client.say('RCPT TO:<zoe@us.example>')).toMatch(/^250 /)
    expect(lookups).toBe(2)
  })
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
