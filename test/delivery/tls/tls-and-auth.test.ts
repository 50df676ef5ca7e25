/** TLS and AUTH of the SMTP client, and LMTP. */
import { commandClients } from '../../support/oauth-clients.ts'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/system/clock.ts'
import { AUTHORITY } from '../../support/certificates.ts'
import { CONTENT, SmtpAgentHarness, type WorldOptions } from '../../support/smtp-agent-harness.ts'
import type { ServerScript } from '../../support/scripted-server.ts'

const TO = ['ann@example.net']
const TLS: ServerScript = { ehlo: '250-far\r\n250-PIPELINING\r\n250 STARTTLS', starttls: '220 2.0.0 Ready' }
const BROKEN: ServerScript = { ...TLS, starttls: { packets: ['220 ready\r\n', 'no handshake for you'].map((text) => Buffer.from(text)) } }

function world(script: ServerScript, options: WorldOptions = {}): SmtpAgentHarness {
  const made = new SmtpAgentHarness(options)
  made.mx('example.net', [10, 'mx.example.net']).host('mx.example.net', '192.0.2.10', script)
  return made
}

const level = (name: string, ...more: string[]): WorldOptions => ({ config: [`smtp_tls_security_level=${name}`, ...more] })
const trusting: WorldOptions['agent'] = { secrets: { tls: { ca: AUTHORITY } } }

describe('TLS', () => {
  test('is used when offered, with any certificate', async () => {
    const far = world(TLS)
    expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
    expect(far.sessions).toMatchObject([{ secure: true }])
    expect(far.sessions[0]?.commands.filter((line) => line.startsWith('EHLO'))).toHaveLength(2)
  })

  test('is not used with smtp_tls_security_level=none', async () => {
    const far = world(TLS, level('none'))
    await far.deliver({ to: TO })
    expect(far.sessions).toMatchObject([{ secure: false }])
  })

  test('mandatory and not offered: deferred 4.7.4, and no mail is sent', async () => {
    const far = world({}, level('encrypt'))
    const result = await far.deliver({ to: TO })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.7.4', stage: 'starttls' })
    expect(result.feedback).toBe('negative')
    expect(far.sessions[0]?.commands).toEqual(['EHLO relay.us.example'])
  })

  test('mandatory, and the host accepts only HELO: deferred 4.7.4', async () => {
    const far = world({ ehlo: '502 what' }, level('encrypt'))
    expect((await far.deliver({ to: TO })).of().status).toBe('4.7.4')
    expect(far.sessions[0]?.commands.filter((line) => line.startsWith('MAIL'))).toEqual([])
  })

  test('mandatory and refused: the server’s reply code decides', async () => {
    const deferred = await world({ ...TLS, starttls: '454 4.7.0 not now' }, level('encrypt')).deliver({ to: TO })
    expect(deferred.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.7.0',
      reason: expect.stringContaining('refused to start TLS') as string,
    })
    const bounced = await world({ ...TLS, starttls: '554 5.7.0 never' }, level('encrypt')).deliver({ to: TO })
    expect(bounced.of()).toMatchObject({ outcome: 'bounced', status: '5.7.0' })
  })

  test('opportunistic and refused: the session continues in cleartext', async () => {
    const far = world({ ...TLS, starttls: '454 4.7.0 not now' })
    expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
    expect(far.sessions).toHaveLength(1)
  })

  test('opportunistic, and the handshake fails: deferred 4.7.5 at first, without negative feedback', async () => {
    const far = world(BROKEN)
    const result = await far.deliver({ to: TO })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.7.5' })
    expect(result.feedback).toBe('none')
    expect(far.sessions).toHaveLength(1)
  })

  test('a failed handshake has a readable reason, without text that differs between processes', async () => {
    const result = await world(BROKEN).deliver({ to: TO })
    expect(result.of().reason).toBe('Cannot start TLS with mx.example.net[192.0.2.10]: wrong version number')
  })

  test('opportunistic, and the handshake fails: cleartext at the same host once the mail is 300 s old', async () => {
    const far = world(BROKEN)
    const request = far.request({ to: TO })
    await far.driver.runUntil(far.clock.now() + 5 * MINUTE)
    const result = await far.deliverRequest(request, { keepConnection: false, signal: new AbortController().signal })
    expect(result.of().outcome).toBe('delivered')
    expect(far.sessions.map(({ secure }) => secure)).toEqual([true, false])
    expect(far.notes).toEqual([expect.stringContaining('trying in clear')])
  })

  test('mandatory, and the handshake fails: never in cleartext', async () => {
    const far = world(BROKEN, level('encrypt'))
    const request = far.request({ to: TO })
    await far.driver.runUntil(far.clock.now() + 10 * MINUTE)
    const result = await far.deliverRequest(request, { keepConnection: false, signal: new AbortController().signal })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.7.5' })
    expect(result.feedback).toBe('negative')
    expect(far.sessions).toHaveLength(1)
  })

  test('verify requires a trusted certificate that names the host', async () => {
    const trusted = world(TLS, { ...level('verify'), agent: trusting })
    expect((await trusted.deliver({ to: TO })).of().outcome).toBe('delivered')
    const unknown = await world(TLS, level('verify')).deliver({ to: TO })
    expect(unknown.of()).toMatchObject({ outcome: 'deferred', status: '4.7.5' })
  })

  test('secure requires a certificate that names the next hop or a subdomain', async () => {
    const below = world(TLS, { ...level('secure'), agent: trusting })
    expect((await below.deliver({ to: TO })).of().outcome).toBe('delivered')
    const other = new SmtpAgentHarness({ ...level('secure'), agent: trusting })
    other.mx('example.org', [10, 'mx.example.net']).host('mx.example.net', '192.0.2.9', TLS)
    const result = await other.deliver({ to: ['ann@example.org'] })
    expect(result.of()).toMatchObject({ status: '4.7.5', reason: expect.stringContaining('does not name example.org') as string })
  })

  test('policies per next hop', async () => {
    const far = world({}, { config: ['smtp_tls_policy_maps=example.net encrypt, .example.org secure match=hostname:nexthop'] })
    expect((await far.deliver({ to: TO })).of().status).toBe('4.7.4')
    expect(() => new SmtpAgentHarness({ config: ['smtp_tls_policy_maps=example.net strict'] })).toThrow(
      /smtp_tls_policy_maps: "example.net strict"/,
    )
  })

  test('cleartext after the 220 to STARTTLS is discarded', async () => {
    const injected: ServerScript = {
      ...TLS,
      ehlo: (_line, nth) => (nth === 0 ? '250-far\r\n250 STARTTLS' : '250-far\r\n250 SIZE 0'),
      starttls: '220 ready\r\n250-far\r\n250 SIZE 1',
    }
    const far = world(injected)
    expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
    expect(far.sessions[0]?.commands).toContain(`MAIL FROM:<app@us.example> SIZE=${CONTENT.length}`)
  })

  test('a handshake that never completes times out', async () => {
    const far = world({}, level('encrypt'))
    const accept = (socket: Socket) => {
      socket.write('220 far\r\n')
      socket.on('data', (chunk) => String(chunk).startsWith('EHLO') && socket.write('250-far\r\n250 STARTTLS\r\n'))
      socket.on('data', (chunk) => String(chunk).startsWith('STARTTLS') && socket.write('220 wait for it\r\n'))
    }
    far.dialOutcome('192.0.2.10', { kind: 'open', accept })
    const result = await far.deliver({ to: TO })
    expect(result.took).toBe(5 * MINUTE)
    expect(result.of()).toMatchObject({ outcome: 'deferred', stage: 'handshake' })
  })
})

describe('the facts of TLS', () => {
  const connected = { protocol: 'TLSv1.3', cipher: expect.stringMatching(/^TLS_/) as string }
  const cases: readonly [string, ServerScript, WorldOptions, object][] = [
    ['TLS is off', TLS, level('none'), { level: 'none', policy: 'none', state: 'clear' }],
    ['TLS is not offered', {}, level('may'), { level: 'may', policy: 'none', state: 'clear' }],
    ['any certificate', TLS, level('may'), { level: 'may', policy: 'none', state: 'encrypted', ...connected }],
    [
      'a trusted certificate',
      TLS,
      { ...level('encrypt'), agent: trusting },
      { level: 'encrypt', policy: 'config', state: 'trusted', ...connected },
    ],
    [
      'a verified certificate',
      TLS,
      { ...level('verify'), agent: trusting },
      { level: 'verify', policy: 'config', state: 'verified', ...connected },
    ],
    [
      'an unknown CA',
      TLS,
      level('verify'),
      { level: 'verify', policy: 'config', state: 'refused', reason: 'unable to verify the first certificate' },
    ],
    ['required and not offered', {}, level('encrypt'), { level: 'encrypt', policy: 'config', state: 'not-offered' }],
    ['a failed handshake', BROKEN, level('may'), { level: 'may', policy: 'none', state: 'undecided', reason: 'wrong version number' }],
  ]
  test.each(cases)('%s', async (_, script, options, tls) => {
    expect((await world(script, options).deliver({ to: TO })).of().tls).toEqual(tls)
  })

  test('are undecided without a connection, and absent without a host', async () => {
    const far = world(TLS)
    far.dialOutcome('192.0.2.10', { kind: 'closed', code: 'ECONNREFUSED' })
    expect((await far.deliver({ to: TO })).of().tls).toEqual({ level: 'may', policy: 'none', state: 'undecided' })
    expect((await far.deliver({ to: ['ann@nowhere.example'] })).of().tls).toBeUndefined()
  })

  test('state the wanted level where mail was sent in clear after a failed handshake', async () => {
    const far = world(BROKEN)
    const request = far.request({ to: TO })
    await far.driver.runUntil(far.clock.now() + 5 * MINUTE)
    const result = await far.deliverRequest(request, { keepConnection: false, signal: new AbortController().signal })
    expect(result.of().tls).toEqual({ level: 'may', policy: 'none', state: 'clear' })
  })

  test('are those of each recipient’s own session, also on a kept connection', async () => {
    const far = world(TLS)
    await far.deliver({ to: TO, keep: true })
    const second = await far.deliver({ to: TO })
    expect(second).toMatchObject({ connectionUse: 2 })
    expect(second.of().tls).toMatchObject({ level: 'may', state: 'encrypted' })
  })
})

describe('smtp_tls_loglevel', () => {
  const log = 'smtp_tls_loglevel=1'
  const cases: readonly [string, WorldOptions, string][] = [
    ['a certificate of an unknown CA', level('may', log), 'Untrusted'],
    ['a trusted certificate', { ...level('may', log), agent: trusting }, 'Trusted'],
    ['a trusted certificate, required with its name', { ...level('verify', log), agent: trusting }, 'Verified'],
  ]
  test.each(cases)('1 reports each TLS connection: %s', async (_certificate, options, trust) => {
    const far = world(TLS, options)
    await far.deliver({ to: TO })
    await far.deliver({ to: TO })
    const tls = { trust, reused: false, protocol: 'TLSv1.3', cipher: expect.stringMatching(/^TLS_/) as string, bits: 256 }
    expect(far.secured).toEqual([
      ['mx.example.net[192.0.2.10]:25', tls],
      ['mx.example.net[192.0.2.10]:25', { ...tls, reused: true }],
    ])
  })

  test('1 reports a trusted certificate with another name as trusted when no name is required', async () => {
    const far = new SmtpAgentHarness({ ...level('encrypt', log), agent: trusting })
    far.mx('example.net', [10, 'other.example.net']).host('other.example.net', '192.0.2.10', TLS)
    await far.deliver({ to: TO })
    expect(far.secured).toMatchObject([['other.example.net[192.0.2.10]:25', { trust: 'Trusted' }]])
  })

  test('no failed handshake and no connection without TLS is reported, and none with 0', async () => {
    const failed = world(TLS, level('verify', log))
    await failed.deliver({ to: TO })
    const clear = world({}, level('may', log))
    await clear.deliver({ to: TO })
    const silent = world(TLS)
    await silent.deliver({ to: TO })
    expect([failed, clear, silent].flatMap(({ secured }) => secured)).toEqual([])
  })
})

describe('TLS connection and session reuse', () => {
  const minutes = (far: SmtpAgentHarness, count: number) => far.driver.runUntil(far.clock.now() + count * MINUTE)

  test('a connection with TLS is kept and reused', async () => {
    const far = world(TLS, level('encrypt'))
    await far.deliver({ to: TO, keep: true })
    const second = await far.deliver({ to: TO, keep: true })
    expect(second).toMatchObject({ connectionUse: 2 })
    expect(second.of().outcome).toBe('delivered')
    expect(far.sessions).toMatchObject([{ secure: true, contents: [CONTENT, CONTENT] }])
    expect(far.sessions[0]?.commands.filter((line) => line === 'STARTTLS' || line === 'RSET')).toEqual(['STARTTLS', 'RSET'])
  })

  test.each(['may', 'encrypt', 'verify', 'secure'])('the next connection resumes the TLS session: %s', async (name) => {
    const far = world(TLS, { ...level(name), agent: trusting })
    for (let n = 0; n < 3; n++) {
      expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
      await minutes(far, 10)
    }
    expect(far.sessions.map(({ secure, resumed }) => [secure, resumed])).toEqual([
      [true, false],
      [true, true],
      [true, true],
    ])
  })

  test('a session is resumed only at its host and with its policy', async () => {
    const far = new SmtpAgentHarness({
      config: ['smtp_tls_policy_maps=example.org secure match=hostname, example.com secure'],
      agent: trusting,
    })
    far.host('mx.example.net', '192.0.2.10', TLS)
    for (const domain of ['example.net', 'example.org', 'example.com']) far.mx(domain, [10, 'mx.example.net'])
    await far.deliver({ to: TO })
    expect((await far.deliver({ to: ['ann@example.org'] })).of().outcome).toBe('delivered')
    // The certificate does not name example.com: the session that was begun for others must not hide that.
    expect((await far.deliver({ to: ['ann@example.com'] })).of().status).toBe('4.7.5')
    expect(far.sessions.map(({ resumed }) => resumed)).toEqual([false, false, false])
  })
})

const AUTH: ServerScript = { ehlo: '250-far\r\n250-PIPELINING\r\n250 AUTH PLAIN LOGIN CRAM-MD5 XOAUTH2' }
const login = (passwords: string, ...config: string[]): WorldOptions => ({
  config: ['smtp_sasl_password_maps=/somewhere', 'smtp_sasl_security_options=', ...config],
  agent: { secrets: { passwords } },
})
const authLine = (far: SmtpAgentHarness) => far.sessions[0]?.commands.find((line) => line.startsWith('AUTH'))

describe('AUTH', () => {
  test('logs in with the password of the next hop', async () => {
    const far = world(AUTH, login('# comment\nexample.net ann:s3:cret\n'))
    expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
    expect(authLine(far)).toBe(`AUTH PLAIN ${Buffer.from('\0ann\0s3:cret').toString('base64')}`)
  })

  test('by sender first with smtp_sender_dependent_authentication', async () => {
    const far = world(AUTH, login('example.net ann:a\napp@us.example bob:b\n', 'smtp_sender_dependent_authentication=yes'))
    await far.deliver({ to: TO })
    expect(authLine(far)).toBe(`AUTH PLAIN ${Buffer.from('\0bob\0b').toString('base64')}`)
  })

  test('by sender, a kept connection is used again for the same login only', async () => {
    const far = world(AUTH, login('@us.example us:a\n@them.example them:b\n', 'smtp_sender_dependent_authentication=yes'))
    for (const from of ['a@us.example', 'b@us.example', 'c@them.example', 'd@us.example']) await far.deliver({ to: TO, from, keep: true })
    expect(far.sessions.map(({ contents }) => contents.length)).toEqual([3, 1])
  })

  test('with an access token', async () => {
    const far = world(AUTH, login('example.net ann:token\n', 'smtp_sasl_mechanism_filter=xoauth2'))
    await far.deliver({ to: TO })
    expect(authLine(far)).toBe(`AUTH XOAUTH2 ${Buffer.from('user=ann\x01auth=Bearer token\x01\x01').toString('base64')}`)
  })

  describe('with smtp_sasl_oauth_token_command', () => {
    const tokenLogin = (...tokens: (string | Error)[]): WorldOptions => {
      const left = [...tokens]
      const runTokenCommand = async () => {
        const next = left.shift() ?? new Error('the command ran too often')
        if (next instanceof Error) throw next
        return next
      }
      const { config = [] } = login('')
      const passwords = 'example.net ann:\n'
      return {
        config: [...config, 'smtp_sasl_oauth_token_command=oauth2 token'],
        agent: { secrets: { passwords } },
        oauth: commandClients(runTokenCommand),
      }
    }
    const bearer = (token: string) => `AUTH XOAUTH2 ${Buffer.from(`user=ann\x01auth=Bearer ${token}\x01\x01`).toString('base64')}`
    const authLines = (far: SmtpAgentHarness) => far.sessions.flatMap(({ commands }) => commands.filter((line) => line.startsWith('AUTH')))

    test('a login without a password uses the token, which is kept for the next session', async () => {
      const far = world(AUTH, tokenLogin('first\n3600'))
      for (let n = 0; n < 2; n++) expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
      expect(authLines(far)).toEqual([bearer('first'), bearer('first')])
    })

    test('a refused token is replaced at once, in the same session', async () => {
      const far = world({ ...AUTH, auth: ['535 5.7.8 expired', '235 ok'] }, tokenLogin('old', 'new'))
      expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
      expect(far.sessions).toHaveLength(1)
      expect(authLines(far)).toEqual([bearer('old'), bearer('new')])
    })

    test('a refusal with a reason in a challenge, as Gmail sends it, is followed by the new token too', async () => {
      const auth = ['334 eyJzdGF0dXMiOiI0MDEifQ==', '535 5.7.8 expired', '235 ok']
      const far = world({ ...AUTH, auth }, tokenLogin('old', 'new'))
      expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
      expect(authLines(far)).toEqual([bearer('old'), bearer('new')])
    })

    test('a refused token that the command prints again: deferred 4.7.8 after one login', async () => {
      const far = world({ ...AUTH, auth: '535 5.7.8 no' }, tokenLogin('same', 'same'))
      expect((await far.deliver({ to: TO })).of()).toMatchObject({ outcome: 'deferred', status: '4.7.8' })
      expect(authLines(far)).toHaveLength(1)
    })

    test('without a token: deferred 4.7.0 with the reason', async () => {
      const far = world(AUTH, tokenLogin(new Error('smtp_sasl_oauth_token_command ended with exit code 1')))
      expect((await far.deliver({ to: TO })).of()).toMatchObject({
        outcome: 'deferred',
        status: '4.7.0',
        reason: expect.stringContaining('no access token: oauth.command: smtp_sasl_oauth_token_command ended with exit code 1') as string,
      })
      expect(authLines(far)).toEqual([])
    })
  })

  test('without TLS only mechanisms that do not send the password, else deferred 4.7.0', async () => {
    const closed = { ...login('example.net ann:a\n'), config: ['smtp_sasl_password_maps=/somewhere'] }
    const far = world({ ehlo: '250-far\r\n250 AUTH PLAIN LOGIN' }, closed)
    const result = await far.deliver({ to: TO })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.7.0', stage: 'auth' })
    expect(result.feedback).toBe('negative')
    expect(authLine(far)).toBeUndefined()
  })

  test('without AUTH the mail is sent unauthenticated', async () => {
    expect((await world({}, login('example.net ann:a\n')).deliver({ to: TO })).of().outcome).toBe('delivered')
  })

  const refused: ServerScript = { ...AUTH, auth: '535 5.7.8 wrong' }

  test('535 5.7.8 is deferred 4.7.8', async () => {
    const result = await world(refused, login('example.net ann:a\n')).deliver({ to: TO })
    expect(result.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.7.8',
      reason: 'SASL authentication failed; server mx.example.net[192.0.2.10] said: 535 5.7.8 wrong',
    })
    expect(result.feedback).toBe('negative')
  })

  test('535 5.7.8 is bounced with smtp_sasl_auth_soft_bounce=no', async () => {
    const result = await world(refused, login('example.net ann:a\n', 'smtp_sasl_auth_soft_bounce=no')).deliver({ to: TO })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.7.8' })
    expect(result.feedback).toBe('positive')
  })

  test.each([
    ['refused', { ...AUTH, auth: '535 5.7.8 wrong' }, '4.7.8'],
    ['missing', { mail: '530 5.7.0 Authentication required' }, '4.7.0'],
  ] as const)('at a relayhost a login that is %s defers, also with smtp_sasl_auth_soft_bounce=no', async (why, script, status) => {
    const options = login('[192.0.2.9] ann:a\n', 'relayhost=[192.0.2.9]', 'smtp_sasl_auth_soft_bounce=no')
    const far = new SmtpAgentHarness(options)
    far.host('relay', '192.0.2.9', script)
    const result = await far.deliver({ to: TO })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status })
    expect(result).toMatchObject({ feedback: 'negative', login: why })
  })

  test('an unread password file is an error', () => {
    expect(() => new SmtpAgentHarness({ config: ['smtp_sasl_password_maps=/somewhere'] })).toThrow('smtp_sasl_password_maps was not read')
  })
})

describe('LMTP', () => {
  test('replies for each recipient after the end of data', async () => {
    const tables = { transport_maps: new Map([['example.net', 'lmtp:[192.0.2.5]']]), destination: new Map() }
    const far = new SmtpAgentHarness({ tables })
    far.host('store', '192.0.2.5', { lhlo: '250-store\r\n250 PIPELINING', dot: ['250 2.0.0 kept', '452 4.2.2 full', '550 5.2.1 gone'] }, 24)
    const result = await far.deliver({ to: ['ann@example.net', 'bob@example.net', 'eve@example.net'] })
    expect(result.of('ann@example.net')).toMatchObject({ outcome: 'delivered', reason: '250 2.0.0 kept' })
    expect(result.of('bob@example.net')).toMatchObject({ outcome: 'deferred', status: '4.2.2' })
    expect(result.of('eve@example.net')).toMatchObject({ outcome: 'bounced', status: '5.2.1' })
    expect(far.sessions[0]?.commands[0]).toBe('LHLO relay.us.example')
  })
})
