/** Access restrictions in SMTP sessions. Replies and log lines are compared with Postfix in test/interop/access.test.ts. */
import { describe, expect, test } from 'vitest'
import { parseTables } from '../../src/config/values/lookup-tables.ts'
import { parseRestrictions, type AccessCheck } from '../../src/config/values/restrictions.ts'
import { seconds } from '../../src/system/clock.ts'
import type { MxRecord, Lookup } from '../../src/system/net.ts'
import { postfixLines } from '../../src/telemetry/log-records.ts'
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

describe('an address with quotes that it does not need', () => {
  const table = 'inline:{{boss@us.example = REJECT no boss}}'
  const NO_BOSS = /^554 5\.7\.1 <boss(?:\+x)?@us\.example>: \w+ address rejected: no boss$/
  const PATHS = [
    'boss@us.example',
    '"boss"@us.example',
    String.raw`"bo\ss"@us.example`,
    '"boss+x"@us.example',
    '@a.example:"boss"@us.example',
  ]

  test.each(PATHS)('%s is found in access tables of senders and recipients', async (path) => {
    const { connect } = await openSmtpd({
      recipient_delimiter: '+',
      smtpd_sender_restrictions: list(`check_sender_access ${table}`, 'check_sender_access'),
      smtpd_recipient_restrictions: list(`check_recipient_access ${table}`),
    })
    const client = await connect()
    expect(await client.say('EHLO x', ...from(path))).toMatch(NO_BOSS)
    expect(await client.say('RSET', 'MAIL FROM:<>', `RCPT TO:<${path}>`)).toMatch(NO_BOSS)
  })

  test.each([...PATHS, '"boss"'])('%s has the owner of boss@us.example', async (path) => {
    const { connect } = await openSmtpd({
      myorigin: 'us.example',
      recipient_delimiter: '+',
      smtpd_sender_login_maps: parseTables('inline:{{boss@us.example = boss}}'),
      smtpd_sender_restrictions: list('reject_unauthenticated_sender_login_mismatch', 'check_sender_access'),
    })
    expect(await (await connect()).say('EHLO x', ...from(path))).toMatch(/^553 5\.7\.1 <boss.*>: Sender address rejected: not logged in$/)
  })

  test('does not hide a minus at its begin', async () => {
    const { connect } = await openSmtpd({})
    const client = await connect()
    for (const path of ['-f@us.example', '"-f"@us.example', '"-f x"@us.example'])
      expect(await client.say('EHLO x', 'RSET', 'MAIL FROM:<>', `RCPT TO:<${path}>`)).toBe('501 5.1.3 Bad recipient address syntax')
    expect(await client.say('RSET', 'MAIL FROM:<"-f"@us.example>')).toBe('501 5.1.7 Bad sender address syntax')
  })

  test('is one recipient with the address without them, and is passed on without them', async () => {
    const { connect, intake } = await openSmtpd({})
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<"boss"@us.example>', 'RCPT TO:<"ann"@far.example>', 'RCPT TO:<ann@far.example>')
    await client.say('RCPT TO:<"a b"@far.example> ORCPT=rfc822;"a+20b"@far.example')
    expect(await client.say('DATA', 'Subject: x', '', '.')).toMatch(/^250 /)
    const [{ message, recipients } = {}] = intake.taken
    expect(message?.sender).toBe('boss@us.example')
    expect(recipients?.map(({ address, orcpt }) => [address, orcpt])).toEqual([
      ['ann@far.example', undefined],
      ['"a b"@far.example', 'rfc822;"a b"@far.example'],
    ])
  })
})

test.each(['root', '"root"', '"a@b"', 'root@us'])('%s is not complete for reject_non_fqdn_sender and _recipient', async (path) => {
  const { connect } = await openSmtpd({
    myorigin: 'us.example',
    smtpd_sender_restrictions: list('reject_non_fqdn_sender', 'check_sender_access'),
    smtpd_recipient_restrictions: list('reject_non_fqdn_recipient'),
  })
  const client = await connect()
  const given = path === '"root"' ? 'root' : path
  expect(await client.say('EHLO x', ...from(path))).toBe(`504 5.5.2 <${given}>: Sender address rejected: need fully-qualified address`)
  expect(await client.say('RSET', 'MAIL FROM:<app@us.example>', `RCPT TO:<${path}>`)).toBe(
    `504 5.5.2 <${given}>: Recipient address rejected: need fully-qualified address`,
  )
  expect(await client.say(...from(`${path}@us.example`.replace(/@us@/, '@')))).toMatch(/^250 /)
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

  test('send no control character to the client or to the log', async () => {
    const { connect, net, of } = await openSmtpd(settings)
    const answers = ['REJECT a\tb\u0001c\u007fd\re', 'WARN a\tb\u0001c', '450 4.7.1 \u001b[2Jlater']
    await net.listen({ address: '127.0.0.1', port: 10031 }, (socket) => {
      socket.on('data', () => socket.write(`action=${answers.shift()}\n\n`))
    })
    const client = await connect()
    expect(await client.say('EHLO x', ...from('a@us.example'))).toBe('554 5.7.1 <ann@far.example>: Recipient address rejected: a b c d e')
    expect(await client.say(...from('a@us.example'))).toMatch(/^250 /)
    expect(await client.say(...from('a@us.example'))).toBe('450 4.7.1 <ann@far.example>: Recipient address rejected:  [2Jlater')
    const lines = [...of('refused'), ...of('access-action')].flatMap((event) => postfixLines(event, { tlsStatus: false }))
    expect(lines.length).toBe(3)
    // oxlint-disable-next-line no-control-regex -- control characters are what this looks for
    for (const { text } of lines) expect(text).not.toMatch(/[\u0000-\u001f\u007f]/)
  })

  test('may answer in pieces that split a character, and defer mail with an answer that is no UTF-8', async () => {
    const { connect, net, wait } = await openSmtpd(settings)
    const whole = Buffer.from('action=REJECT née\n\n')
    let asked = 0
    await net.listen({ address: '127.0.0.1', port: 10031 }, (socket) => {
      socket.on('data', () => {
        if (asked++ > 0) return void socket.write(Buffer.from('action=REJECT n\xe9e\n\n', 'latin1'))
        socket.write(whole.subarray(0, 16))
        socket.write(whole.subarray(16))
      })
    })
    const client = await connect()
    const bytes = Buffer.from(await client.say('EHLO x', ...from('a@us.example')), 'latin1').toString()
    expect(bytes).toBe('554 5.7.1 <ann@far.example>: Recipient address rejected: née')
    await client.say(...from('a@us.example'))
    await wait(seconds(2))
    expect(client.heard).toContain('451 4.3.5 ')
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
      {
        lookupMx: (name) => domains[name] ?? { kind: 'none', nxdomain: true },
        lookupAddresses: () => ({ kind: 'none', nxdomain: true }),
      },
    )
    expect(await (await connect()).say('EHLO x', ...from(`app@${domain}`))).toMatch(reply)
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
