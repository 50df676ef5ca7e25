/** Access restrictions in SMTP sessions. Replies and log lines are compared with Postfix in test/interop/access.test.ts. */
import { describe, expect, test } from 'vitest'
import { parseTables } from '../../src/config/values/lookup-tables.ts'
import { parseRestrictions, type AccessCheck } from '../../src/config/values/restrictions.ts'
import { HOUR, MINUTE, seconds } from '../../src/system/clock.ts'
import type { MxRecord, Lookup } from '../../src/system/net.ts'
import { openSmtpd, OUTSIDER } from '../support/smtpd-harness.ts'

const list = (text: string, subject: AccessCheck = 'check_recipient_access') => parseRestrictions(text, subject)
const XCLIENT = { smtpd_authorized_xclient_hosts: ['127.0.0.1'], smtpd_sasl_auth_enable: true }
const as = (login: string): readonly string[] => ['EHLO x', `XCLIENT ADDR=203.0.113.9 LOGIN=${login}`, 'EHLO x']
const from = (sender: string): readonly string[] => ['RSET', `MAIL FROM:<${sender}>`, 'RCPT TO:<ann@far.example>']

describe('owners of senders', () => {
  const settings = {
    ...XCLIENT,
    smtpd_sender_login_maps: parseTables('inline:{{ann@us.example = ann, boss} {@team.example = team} root=admin}'),
    smtpd_sender_restrictions: list('reject_sender_login_mismatch', 'check_sender_access'),
  }

  test('a user sends as its own addresses only', async () => {
    const { connect } = await openSmtpd(settings)
    const client = await connect()
    await client.say(...as('Boss'))
    expect(await client.say(...from('Ann@us.example'))).toMatch(/^250 /)
    expect(await client.say(...from('root@relay.example'))).toBe(
      '553 5.7.1 <root@relay.example>: Sender address rejected: not owned by user Boss',
    )
    expect(await client.say(...from('any@team.example'))).toMatch(/^553 5\.7\.1 .*not owned by user Boss$/)
    expect(await client.say(...from('stranger@far.example'))).toMatch(/^553 /)
  })

  test('a client without login cannot send as an owned address', async () => {
    const { connect } = await openSmtpd(settings)
    const client = await connect('127.0.0.1')
    expect(await client.say('EHLO x', ...from('ann@us.example'))).toBe('553 5.7.1 <ann@us.example>: Sender address rejected: not logged in')
    expect(await client.say(...from('free@us.example'))).toMatch(/^250 /)
    expect(await client.say(...from(''))).toMatch(/^250 /)
  })
})

describe('policy servers', () => {
  const settings = { smtpd_recipient_restrictions: list('check_policy_service inet:127.0.0.1:10031') }

  test('get the attributes of the recipient over a kept connection, and their action is taken', async () => {
    const { connect, net } = await openSmtpd(settings)
    const requests: string[] = []
    let connections = 0
    await net.listen({ address: '127.0.0.1', port: 10031 }, (socket) => {
      connections++
      socket.on('data', (bytes) => {
        requests.push(String(bytes))
        socket.write(requests.length === 1 ? 'action=DUNNO\n\n' : 'action=defer_if_permit 4.2.0 greylisted\n\n')
      })
    })
    const client = await connect()
    expect(await client.say('EHLO x', 'MAIL FROM:<app@us.example> SIZE=77', 'RCPT TO:<ann@far.example>')).toMatch(/^250 /)
    expect(await client.say('RCPT TO:<bob@far.example>')).toBe('450 4.2.0 <bob@far.example>: Recipient address rejected: greylisted')
    const [first = '', second = ''] = requests
    expect(first).toMatch(/^request=smtpd_access_policy\nprotocol_state=RCPT\nprotocol_name=ESMTP\nclient_address=127\.0\.0\.1\n[^]*\n\n$/)
    for (const line of ['helo_name=x', 'sender=app@us.example', 'recipient=ann@far.example', 'size=77'])
      expect(first.split('\n')).toContain(line)
    const instanceOf = (text: string) => /^instance=(.+)$/m.exec(text)?.[1]
    expect(instanceOf(first)).toBe(instanceOf(second))
    expect(connections).toBe(1)
  })

  test('that do not answer twice defer mail, with a warning in the log', async () => {
    const { connect, wait, of } = await openSmtpd({ ...settings, smtpd_policy_service_timeout: seconds(10) })
    const client = await connect()
    expect(await client.say('EHLO x', ...from('app@us.example'))).toBe('')
    await wait(seconds(2))
    expect(client.heard).toContain('451 4.3.5 <ann@far.example>: Recipient address rejected: Server configuration problem\r\n')
    expect(of('note').at(-1)?.text).toMatch(
      /^check_policy_service inet:127\.0\.0\.1:10031: .*smtpd_policy_service_default_action is taken$/,
    )
  })

  test('that accept the connection and keep silent are given up after smtpd_policy_service_timeout, twice', async () => {
    const { connect, wait, net } = await openSmtpd({ ...settings, smtpd_policy_service_timeout: seconds(10) })
    await net.listen({ address: '127.0.0.1', port: 10031 }, () => undefined)
    const client = await connect()
    await client.say('EHLO x', ...from('app@us.example'))
    await wait(seconds(20))
    expect(client.heard).not.toContain('451 ')
    await wait(seconds(2))
    expect(client.heard).toContain('451 4.3.5 ')
  })

  test('that close a kept connection are asked again at once', async () => {
    const { connect, net } = await openSmtpd(settings)
    await net.listen({ address: '127.0.0.1', port: 10031 }, (socket) => {
      socket.once('data', () => socket.end('action=OK\n\n'))
    })
    const client = await connect()
    for (const sender of ['a@us.example', 'b@us.example']) expect(await client.say('EHLO x', ...from(sender))).toMatch(/^250 /)
  })

  test('that answer nonsense defer mail', async () => {
    const { connect, net, wait } = await openSmtpd(settings)
    await net.listen({ address: '127.0.0.1', port: 10031 }, (socket) => {
      socket.on('data', () => socket.write('action=perhaps\n\n'))
    })
    const client = await connect()
    await client.say('EHLO x', ...from('a@us.example'))
    await wait(seconds(2))
    expect(client.heard).toContain('451 4.3.5 ')
  })
})

describe('domains of senders', () => {
  const domains: Readonly<Record<string, Lookup<MxRecord>>> = {
    'known.example': { kind: 'found', records: [{ preference: 10, exchange: 'mx.known.example' }] },
    'null.example': { kind: 'found', records: [{ preference: 0, exchange: '' }] },
    'missing.example': { kind: 'none', nxdomain: true },
    'broken.example': { kind: 'failed', soft: true, reason: 'SERVFAIL' },
  }

  test.each([
    ['known.example', /^250 /],
    ['null.example', /^550 5\.7\.27 <app@null\.example>: Sender address rejected: Domain null\.example does not accept mail \(nullMX\)$/],
    ['missing.example', /^450 4\.1\.8 <app@missing\.example>: Sender address rejected: Domain not found$/],
    ['broken.example', /^450 4\.1\.8 /],
    ['[192.0.2.1]', /^250 /],
  ])('%s', async (domain, reply) => {
    const { connect } = await openSmtpd(
      { smtpd_sender_restrictions: list('reject_unknown_sender_domain', 'check_sender_access') },
      { lookupMx: (name) => domains[name] ?? { kind: 'none', nxdomain: true } },
    )
    expect(await (await connect()).say('EHLO x', ...from(`app@${domain}`))).toMatch(reply)
  })
})

describe('limits of messages per hour', () => {
  test('a sender above its limit gets 450 until an hour after its first message', async () => {
    const { connect, wait } = await openSmtpd({ smtpd_sender_hourly_message_limit: 2 })
    const client = await connect()
    const send = (sender: string) => client.say('EHLO x', 'RSET', `MAIL FROM:<${sender}>`)
    for (const sender of ['app@us.example', 'App@us.example', 'other@us.example', '', '', '']) expect(await send(sender)).toMatch(/^250 /)
    expect(await send('app@us.example')).toBe('450 4.7.1 Error: too much mail from app@us.example')
    await wait(HOUR - MINUTE)
    const late = await connect()
    expect(await late.say('EHLO x', 'MAIL FROM:<app@us.example>')).toMatch(/^450 /)
    await wait(MINUTE)
    expect(await late.say('MAIL FROM:<app@us.example>')).toMatch(/^250 /)
  })

  test('a user above its limit gets 450 whatever the sender, and other users do not', async () => {
    const { connect } = await openSmtpd({ ...XCLIENT, smtpd_user_hourly_message_limit: 1 })
    const client = await connect()
    expect(await client.say(...as('ann'), 'MAIL FROM:<a@us.example>')).toMatch(/^250 /)
    expect(await client.say('RSET', 'MAIL FROM:<b@us.example>')).toBe('450 4.7.1 Error: too much mail from ann')
    const other = await connect()
    expect(await other.say(...as('bob'), 'MAIL FROM:<a@us.example>')).toMatch(/^250 /)
  })
})

test('OK of a client list does not permit relaying, and a stranger is refused before the recipient list', async () => {
  const { connect } = await openSmtpd({
    smtpd_client_restrictions: list('static:OK', 'check_client_access'),
    smtpd_sender_restrictions: list('permit', 'check_sender_access'),
    smtpd_recipient_restrictions: list('permit'),
  })
  const client = await connect(OUTSIDER)
  expect(await client.say('EHLO x', ...from('app@us.example'))).toBe('454 4.7.1 <ann@far.example>: Relay access denied')
})

test('an entry that is no action refuses the mail that meets it with 451, and other mail is taken', async () => {
  const table = 'inline:{{bad@far.example = REDIRECT}}'
  expect(() => list(`check_recipient_access ${table}`)).not.toThrow()
  await expect(openSmtpd({ smtpd_recipient_restrictions: list(`check_recipient_access ${table}`) })).rejects.toThrow(
    'smtpd_recipient_restrictions: "" is no address; write REDIRECT user@example.com',
  )
})

test('pipelined recipients are answered in order while a policy server thinks', async () => {
  const { connect, net } = await openSmtpd({ smtpd_recipient_restrictions: list('check_policy_service inet:127.0.0.1:10031') })
  await net.listen({ address: '127.0.0.1', port: 10031 }, (socket) => {
    socket.on('data', (bytes) => socket.write(String(bytes).includes('recipient=no@') ? 'action=550 no\n\n' : 'action=OK\n\n'))
  })
  const client = await connect()
  await client.say('EHLO x')
  const heard = await client.send(
    'MAIL FROM:<a@us.example>\r\nRCPT TO:<ann@far.example>\r\nRCPT TO:<no@far.example>\r\nRCPT TO:<eve@far.example>\r\nDATA\r\n',
  )
  expect(heard.match(/^\d{3}/gm)).toEqual(['250', '250', '550', '250', '354'])
})
