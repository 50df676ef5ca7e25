/** TLS that starts with the connection (smtp_tls_wrappermode): before scripted servers, and before a real one on loopback. */
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { tryNextHop } from '../../../src/delivery/smtp/next-hop-trial.ts'
import { SECOND } from '../../../src/system/clock.ts'
import { realClock } from '../../support/real-clock.ts'
import { SystemNet } from '../../../src/system/system-net.ts'
import { AUTHORITY, CERTIFICATE, KEY } from '../../support/certificates.ts'
import { CONTENT, SmtpAgentHarness, type WorldOptions } from '../../support/smtp-agent-harness.ts'
import { ScriptedServer, type ServerScript } from '../../support/scripted-server.ts'

const TO = ['ann@example.org']
const WRAPPER = ['smtp_tls_wrappermode=yes', 'smtp_tls_security_level=encrypt']
const RELAY = 'relayhost=[mx.example.net]:465'

function world(script: ServerScript, config: readonly string[] = WRAPPER, more: WorldOptions = {}): SmtpAgentHarness {
  const made = new SmtpAgentHarness({ config: [RELAY, ...config], ...more })
  made.host('mx.example.net', '192.0.2.10', script, 465)
  return made
}

describe('with smtp_tls_wrappermode', () => {
  test('TLS starts before the greeting, and STARTTLS is not sent', async () => {
    const far = world({ wrapper: true, ehlo: '250-far\r\n250-PIPELINING\r\n250 STARTTLS' })
    expect((await far.deliver({ to: TO })).of()).toMatchObject({ outcome: 'delivered' })
    expect(far.sessions).toMatchObject([{ secure: true, contents: [CONTENT] }])
    expect(far.sessions[0]?.commands.slice(0, 2)).toEqual(['EHLO relay.us.example', expect.stringMatching(/^MAIL /) as string])
  })

  test('verify needs a trusted certificate, as with STARTTLS', async () => {
    const level = ['smtp_tls_wrappermode=yes', 'smtp_tls_security_level=verify']
    const trusting = world({ wrapper: true }, level, { agent: { secrets: { tls: { ca: AUTHORITY } } } })
    expect((await trusting.deliver({ to: TO })).of().outcome).toBe('delivered')
    const result = await world({ wrapper: true }, level).deliver({ to: TO })
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.7.5', stage: 'handshake' })
  })

  test('the connection is logged, kept, and its TLS session resumed', async () => {
    const far = world({ wrapper: true }, [...WRAPPER, 'smtp_tls_loglevel=1'])
    await far.deliver({ to: TO, keep: true })
    await far.deliver({ to: TO })
    await far.deliver({ to: TO })
    expect(far.sessions.map(({ resumed }) => resumed)).toEqual([false, true])
    expect(far.secured).toMatchObject([
      ['mx.example.net[192.0.2.10]:465', { trust: 'Untrusted', reused: false }],
      ['mx.example.net[192.0.2.10]:465', { trust: 'Untrusted', reused: true }],
    ])
  })

  test('a server without TLS is deferred 4.7.5, and gets no mail in clear', async () => {
    const far = world({})
    const request = far.request({ to: TO })
    await far.driver.runUntil(far.clock.now() + 600 * SECOND)
    const result = await far.deliverRequest(request, { keepConnection: false, signal: new AbortController().signal })
    expect(result.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.7.5',
      reason: 'Cannot start TLS with mx.example.net[192.0.2.10]: wrong version number',
    })
    expect(result.feedback).toBe('negative')
    expect(far.sessions).toHaveLength(1)
  })

  test('a silent server is left after smtp_starttls_timeout, not after the timeout of the greeting', async () => {
    const far = world({}, [...WRAPPER, 'smtp_starttls_timeout=20s'])
    // A scripted server could take bytes of the handshake for a command.
    far.dialOutcome('192.0.2.10', { kind: 'open', accept: (socket) => void socket.resume() }, 465)
    const result = await far.deliver({ to: TO })
    expect(result.of()).toMatchObject({ status: '4.7.5', reason: expect.stringContaining('TLS handshake timed out') as string })
    expect(result.took).toBe(20 * SECOND)
  })

  test('a server that is silent after the handshake is left after smtp_helo_timeout', async () => {
    const far = world({ wrapper: true, greeting: null }, [...WRAPPER, 'smtp_helo_timeout=30s'])
    const result = await far.deliver({ to: TO })
    expect(result.of()).toMatchObject({
      status: '4.4.2',
      reason: expect.stringContaining('timed out while receiving the initial server greeting') as string,
    })
  })

  test('a destination without it uses STARTTLS on the same relay', async () => {
    const tables = { destination: new Map([['example.com', { smtp_tls_wrappermode: false }]]) }
    const far = world({ ehlo: '250-far\r\n250 STARTTLS', starttls: '220 Ready' }, WRAPPER, { tables })
    expect((await far.deliver({ to: ['ann@example.com'] })).of().outcome).toBe('delivered')
    expect(far.sessions[0]?.commands).toContain('STARTTLS')
  })

  test('LMTP does not use it', async () => {
    const tables = { transport_maps: new Map([['example.org', 'lmtp:[192.0.2.5]']]) }
    const far = new SmtpAgentHarness({ config: WRAPPER.slice(0, 1).concat('smtp_tls_security_level=encrypt'), tables })
    far.host('store', '192.0.2.5', { lhlo: '250-store\r\n250 STARTTLS', starttls: '220 Ready' }, 24)
    expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
  })

  test('a next hop whose policy allows mail without TLS is not connected to', async () => {
    const far = world({}, [...WRAPPER, 'smtp_tls_policy_maps=[mx.example.net]:465 may'])
    const result = await far.deliver({ to: TO })
    expect(result.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.3.5',
      reason: 'smtp_tls_wrappermode needs a TLS level of encrypt or above for host mx.example.net[192.0.2.10], and its level is may',
    })
    expect(far.dialled).toEqual([])
  })

  test('a policy may raise the level of the next hop', async () => {
    const far = world({ wrapper: true }, ['smtp_tls_wrappermode=yes', 'smtp_tls_policy_maps=[mx.example.net]:465 encrypt'])
    expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
  })
})

describe('the configuration', () => {
  const problems = (values: Readonly<Record<string, unknown>>): string => {
    try {
      configFrom(values, 'relay.example')
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  const NEEDS =
    /smtp_tls_wrappermode = yes needs a smtp_tls_security_level of "encrypt" or "dane-only" or "verify" or "secure", and the level is "(\w+)"/

  test.each([
    [{ smtp_tls_wrappermode: 'yes' }, 'may'],
    [{ smtp_tls_wrappermode: 'yes', smtp_tls_security_level: 'none' }, 'none'],
    [{ smtp_tls_wrappermode: 'yes', smtp_tls_policy_maps: ['a.example may'] }, 'may'],
    [{ destination: { 'a.example': { smtp_tls_wrappermode: 'yes' } } }, 'may'],
    [
      {
        smtp_tls_wrappermode: 'yes',
        smtp_tls_security_level: 'encrypt',
        destination: { 'a.example': { smtp_tls_security_level: 'none' } },
      },
      'none',
    ],
  ])('%j is refused', (values, level) => {
    expect(NEEDS.exec(problems(values))?.[1]).toBe(level)
  })

  test.each([
    { smtp_tls_wrappermode: 'yes', smtp_tls_security_level: 'secure' },
    { smtp_tls_wrappermode: 'yes', smtp_tls_policy_maps: ['a.example encrypt'] },
    { destination: { 'a.example': { smtp_tls_wrappermode: 'yes', smtp_tls_security_level: 'verify' } } },
    {
      smtp_tls_wrappermode: 'yes',
      smtp_tls_security_level: 'encrypt',
      destination: { 'lmtp:unix:/s': { smtp_tls_security_level: 'none' } },
    },
  ])('%j is accepted', (values) => expect(problems(values)).toBe(''))

  test('a malformed level is one problem', () => {
    expect(problems({ smtp_tls_wrappermode: 'yes', smtp_tls_security_level: 'encypt' }).split('\n')).toHaveLength(1)
    expect(
      problems({ destination: { 'a.example': { smtp_tls_wrappermode: 'yes', smtp_tls_security_level: 'x' } } }).split('\n'),
    ).toHaveLength(1)
  })
})

describe('over real sockets', () => {
  const open: Server[] = []
  afterEach(() => {
    for (const server of open.splice(0)) server.close()
  })

  async function listen(server: Server): Promise<number> {
    open.push(server)
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    return (server.address() as AddressInfo).port
  }

  const attempt = async (port: number, level = 'encrypt') => {
    const overrides = ['smtp_tls_wrappermode=yes', `smtp_tls_security_level=${level}`, 'smtp_starttls_timeout=5s', 'smtp_helo_timeout=5s']
    const { config } = configFrom({}, 'relay.us.example', { overrides })
    const hop = { host: '127.0.0.1', port, mx: false, origin: 'relayhost' } as const
    return tryNextHop(hop, { config, secrets: { tls: { ca: AUTHORITY } }, net: new SystemNet(), clock: realClock })
  }

  test('a TLS server is greeted over TLS', async () => {
    const far = new ScriptedServer('far', {})
    const port = await listen(createServer({ cert: CERTIFICATE, key: KEY }, (socket: Socket) => far.accept(socket)))
    expect(await attempt(port)).toMatchObject([{ ok: true, text: `127.0.0.1[127.0.0.1]:${port}: TLS, no login` }])
    expect(far.sessions[0]?.commands[0]).toBe('EHLO relay.us.example')
    expect(await attempt(port, 'verify')).toMatchObject([
      { ok: false, text: expect.stringMatching(/^Server certificate not verified: .*does not name/) as string },
    ])
  })

  test('a server that speaks first in clear, and one that closes the connection, are refused', async () => {
    const far = new ScriptedServer('far', {})
    const clear = await listen(createTcpServer((socket) => far.accept(socket)))
    expect(await attempt(clear)).toMatchObject([{ ok: false, text: 'Cannot start TLS with 127.0.0.1[127.0.0.1]: wrong version number' }])
    const closing = await listen(createTcpServer((socket) => socket.end()))
    expect(await attempt(closing)).toMatchObject([
      { ok: false, text: expect.stringMatching(/^Cannot start TLS with 127\.0\.0\.1/) as string },
    ])
  })
})
