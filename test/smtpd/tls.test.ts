import { defaultConfig } from '../../src/config/load.ts'
import { listenersOf, readCertificate } from '../../src/config/smtpd-listeners.ts'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTcp } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Config } from '../../src/config/options.ts'
import { MINUTE, SECOND } from '../../src/system/clock.ts'
import { realClock } from '../support/real-clock.ts'
import { SystemNet } from '../../src/system/system-net.ts'
import { seededRandom } from '../../src/system/random.ts'
import { hashPassword } from '../../src/access/users.ts'
import { postfixLines } from '../../src/telemetry/log-records.ts'
import { AUTHORITY, CERTIFICATE, KEY } from '../support/certificates.ts'
import { openSmtpd, OUTSIDER, startSmtpdOn, RawClient, type SmtpdHarness } from '../support/smtpd-harness.ts'
import { segmentations } from '../support/segments.ts'

let folder = ''
let settings: Partial<Config> = {}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'deferd-tls-'))
  const [cert, key, users] = ['cert.pem', 'key.pem', 'users'].map((name) => join(folder, name)) as [string, string, string]
  await writeFile(cert, CERTIFICATE)
  await writeFile(key, KEY)
  await writeFile(users, `# who may send\nann ${await hashPassword('open sesame', seededRandom(1))}\n`)
  settings = {
    smtpd_tls_security_level: 'may',
    smtpd_tls_cert_file: cert,
    smtpd_tls_key_file: key,
    smtpd_sasl_auth_enable: true,
    smtpd_sasl_users_file: users,
  }
})

afterAll(() => rm(folder, { recursive: true }))

/** Handshakes and hashes happen outside of virtual time: waits are for output of the server. */
async function heard(client: RawClient, pattern: RegExp): Promise<string> {
  for (const start = performance.now(); !pattern.test(client.heard) && performance.now() - start < 10_000;) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  expect(client.heard).toMatch(pattern)
  return client.heard
}

async function encrypted(world: SmtpdHarness, client: RawClient): Promise<RawClient> {
  const secure = connectTls({ socket: client.socket, rejectUnauthorized: false })
  await once(secure, 'secureConnect')
  return new RawClient(secure, () => world.wait(0))
}

/** A client that has sent EHLO over TLS. */
async function greetedOverTls(world: SmtpdHarness, from = OUTSIDER): Promise<RawClient> {
  const client = await world.connect(from)
  await client.say('EHLO x', 'STARTTLS')
  const secure = await encrypted(world, client)
  await secure.say('EHLO x')
  await heard(secure, /CHUNKING\r\n$/)
  return secure
}

/** Sends a line and waits for its reply. */
async function ask(client: RawClient, line: string): Promise<string> {
  const before = client.heard.length
  client.socket.write(`${line}\r\n`)
  for (const start = performance.now(); client.heard.length === before && performance.now() - start < 10_000;) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return client.heard.slice(before).trimEnd()
}

const plain = (text: string): string => `AUTH PLAIN ${Buffer.from(text).toString('base64')}`

describe('STARTTLS', () => {
  test('is announced until it is used, and recorded in Received', async () => {
    const world = await openSmtpd({ ...settings, relay_domains: ['far.example'] })
    const client = await world.connect(OUTSIDER)
    expect(await client.say('EHLO x')).toContain('250-STARTTLS\r\n')
    expect(client.heard).not.toContain('AUTH')
    expect(await client.say('STARTTLS')).toBe('220 2.0.0 Ready to start TLS')
    const secure = await encrypted(world, client)
    expect(await ask(secure, 'EHLO y')).toContain('250-AUTH PLAIN LOGIN')
    expect(secure.heard).not.toContain('STARTTLS')
    expect(await ask(secure, 'STARTTLS')).toBe('554 5.5.1 Error: TLS already active')
    for (const line of ['MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>', 'DATA']) await ask(secure, line)
    expect(await ask(secure, 'Subject: x\r\n\r\nx\r\n.')).toMatch(/^250 2\.0\.0 Ok: queued/)
    expect(world.intake.taken[0]?.text).toMatch(
      /^Received: from y \(unknown \[203\.0\.113\.9\]\)\r\n\t\(using TLSv1\.3 with cipher TLS_\w+\)\r\n\tby relay\.example \(Deferd\) with ESMTPS id /,
    )
  })

  test('a client may close its connection with the end of the handshake', async () => {
    const { smtpd, events } = await startSmtpdOn(new SystemNet(), realClock, { ...settings, smtpd_listen: ['127.0.0.1:0'] })
    const socket = connectTcp(smtpd.listeners[0]?.port ?? 0, '127.0.0.1')
    for (const line of ['EHLO x', 'STARTTLS', '']) {
      await once(socket, 'data')
      if (line !== '') socket.write(`${line}\r\n`)
    }
    // The end of the handshake and close_notify arrive in one packet, as from openssl s_client with an empty input.
    const packets: Buffer[] = []
    const wire = new Duplex({
      read: () => undefined,
      write: (bytes: Buffer, _encoding, done) => {
        if (packets.length > 0 || socket.bytesRead > greeted) packets.push(bytes)
        else socket.write(bytes)
        done()
      },
    })
    const greeted = socket.bytesRead
    socket.on('data', (bytes) => wire.push(bytes))
    const secure = connectTls({ socket: wire, rejectUnauthorized: false, minVersion: 'TLSv1.3' })
    await once(secure, 'secureConnect')
    secure.end()
    await once(secure, 'finish')
    socket.end(Buffer.concat(packets))
    await expect.poll(() => events.some(({ kind }) => kind === 'disconnected')).toBe(true)
    await smtpd.close(0)
  })

  test.each([
    ['a command', 'NOOP\r\n'],
    ['a transaction', 'EHLO evil\r\nMAIL FROM:<evil@x.example>\r\n'],
    ['400 commands', 'NOOP\r\n'.repeat(400)],
  ])('cleartext after STARTTLS is discarded: %s', async (_, cleartext) => {
    const world = await openSmtpd(settings)
    const client = await world.connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>')
    expect(await client.send(`STARTTLS\r\n${cleartext}`)).toBe('220 2.0.0 Ready to start TLS\r\n')
    expect(client.closed).toBe(false)
  })

  test('cleartext after STARTTLS is discarded at any segmentation', async () => {
    const world = await openSmtpd(settings)
    for (const { packets } of segmentations(Buffer.from('STARTTLS\r\nNOOP\r\n'))) {
      const client = await world.connect()
      await client.say('EHLO x')
      expect(await client.send(...packets)).toBe('220 2.0.0 Ready to start TLS\r\n')
      client.socket.destroy()
      await world.wait(SECOND)
      expect(world.of('disconnected').at(-1)?.commands).toEqual({ ehlo: [1, 1], starttls: [0, 1] })
    }
  })

  test('session state from before STARTTLS is discarded', async () => {
    const world = await openSmtpd(settings)
    const client = await world.connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>', 'STARTTLS')
    const secure = await encrypted(world, client)
    expect(await ask(secure, 'DATA')).toBe('503 5.5.1 Error: need RCPT command')
  })

  test.each(['MAIL FROM:<a@b.example>', 'MAIL FROM:<>'])('must precede %s with smtpd_tls_security_level=encrypt', async (line) => {
    const world = await openSmtpd({ ...settings, smtpd_tls_security_level: 'encrypt' })
    const client = await world.connect()
    expect(await client.say('EHLO x', line)).toBe('530 5.7.0 Must issue a STARTTLS command first')
    expect(await ask(await greetedOverTls(world), line)).toBe('250 2.1.0 Ok')
  })

  test.each([
    ['', 0],
    [' after a delayed reply to STARTTLS', 5 * SECOND],
  ])('an unfinished handshake times out after ten seconds%s', async (_, delay) => {
    const { connect, wait } = await openSmtpd({ ...settings, smtpd_soft_error_limit: 1, smtpd_error_sleep_time: delay })
    const client = await connect()
    await client.say('EHLO x')
    for (const command of ['WRONG', 'WRONG', 'STARTTLS']) {
      client.socket.write(`${command}\r\n`)
      await wait(delay)
    }
    expect(client.heard).toMatch(/220 2\.0\.0 Ready to start TLS\r\n$/)
    await wait(10 * SECOND - 1)
    expect(client.closed).toBe(false)
    await wait(1)
    expect(client.closed).toBe(true)
  })

  test('a failed handshake closes the connection and is logged', async () => {
    const { connect, wait, of } = await openSmtpd(settings)
    const client = await connect()
    await client.say('EHLO x', 'STARTTLS')
    await client.send('this is no handshake\r\n')
    await wait(SECOND)
    expect(client.closed).toBe(true)
    expect(of('client-failure')[0]?.failure.what).toBe('tls-failed')
    expect(of('disconnected')).toHaveLength(1)
  })
})

test('a listener may use TLS from the first byte, and may require AUTH', async () => {
  const blocks = {
    smtpd_listen: [],
    smtpd: [
      { address: '127.0.0.1:465', tls: 'wrapper', auth: 'required', upstream_proxy_protocol: '', class: '', settings: {}, positions: {} },
    ],
  } as const
  const world = await openSmtpd({ ...settings, ...blocks })
  const client = await world.connect(OUTSIDER)
  const secure = await encrypted(world, client)
  await world.wait(1)
  await heard(secure, /^220 relay\.example ESMTP Deferd\r\n$/)
  expect(await ask(secure, 'EHLO x')).toContain('250-AUTH PLAIN LOGIN')
  expect(await ask(secure, 'MAIL FROM:<a@b.example>')).toBe('530 5.7.0 Authentication required')
  expect(await ask(secure, plain('\0ann\0open sesame'))).toMatch(/^235 2\.7\.0 /)
  expect(await ask(secure, 'MAIL FROM:<a@b.example> AUTH=<>')).toBe('250 2.1.0 Ok')
})

test('a client of such a listener that does not start the handshake times out', async () => {
  const blocks = {
    smtpd_listen: [],
    smtpd: [
      { address: '127.0.0.1:465', tls: 'wrapper', auth: 'none', upstream_proxy_protocol: '', class: '', settings: {}, positions: {} },
    ],
  } as const
  const { connect, wait } = await openSmtpd({ ...settings, ...blocks })
  const client = await connect(OUTSIDER)
  await wait(10 * SECOND)
  expect([client.heard, client.closed]).toEqual(['', true])
})

describe('AUTH', () => {
  test('is refused in cleartext, at any segmentation', async () => {
    const world = await openSmtpd(settings)
    for (const { packets } of segmentations(Buffer.from(`${plain('\0ann\0open sesame')}\r\n`))) {
      const client = await world.connect()
      await client.say('EHLO x')
      expect(await client.send(...packets)).toBe('503 5.5.1 Error: authentication not enabled\r\n')
    }
  })

  test('is refused in cleartext', async () => {
    const { connect } = await openSmtpd(settings)
    const client = await connect()
    expect(await client.say('EHLO x', plain('\0ann\0open sesame'))).toBe('503 5.5.1 Error: authentication not enabled')
  })

  test('allows relaying, and the login is logged and recorded in Received', async () => {
    const world = await openSmtpd(settings)
    const client = await greetedOverTls(world)
    expect(await ask(client, plain('\0ann\0open sesame'))).toBe('235 2.7.0 Authentication successful')
    expect(await ask(client, plain('\0ann\0open sesame'))).toBe('503 5.5.1 Error: already authenticated')
    for (const line of ['MAIL FROM:<a@b.example>', 'RCPT TO:<bob@anywhere.example>', 'DATA']) await ask(client, line)
    expect(await ask(client, 'Subject: x\r\n\r\nx\r\n.')).toMatch(/^250 /)
    expect(world.intake.taken[0]).toMatchObject({ saslUsername: 'ann', saslMethod: 'PLAIN' })
    expect(world.intake.taken[0]?.text).toMatch(/ with ESMTPSA id /)
    expect(world.intake.taken[0]?.original).toMatch(/^Message-Id: |\r\nMessage-Id: /)
  })

  test('LOGIN prompts for name and password', async () => {
    const world = await openSmtpd(settings)
    const client = await greetedOverTls(world)
    expect(await ask(client, 'AUTH LOGIN')).toBe('334 VXNlcm5hbWU6')
    expect(await ask(client, Buffer.from('ann').toString('base64'))).toBe('334 UGFzc3dvcmQ6')
    expect(await ask(client, Buffer.from('open sesame').toString('base64'))).toMatch(/^235 /)
  })

  test('PLAIN may be sent on a line of its own, or cancelled with *', async () => {
    const world = await openSmtpd(settings)
    const client = await greetedOverTls(world)
    client.socket.write('AUTH PLAIN\r\n')
    await heard(client, /334 \r\n$/)
    expect(await ask(client, '*')).toMatch(/^501 /)
    expect(await ask(client, 'NOOP')).toBe('250 2.0.0 Ok')
  })

  test.each([
    ['a wrong password', plain('\0ann\0wrong')],
    ['an unknown user', plain('\0eve\0open sesame')],
    ['an identity that is not one’s own', plain('eve\0ann\0open sesame')],
    ['no password', plain('\0ann\0')],
  ])('%s is refused', async (_, line) => {
    const world = await openSmtpd(settings)
    const client = await greetedOverTls(world)
    expect(await ask(client, line)).toBe('535 5.7.8 Error: authentication failed')
    await ask(client, 'MAIL FROM:<a@b.example>')
    expect(await ask(client, 'RCPT TO:<bob@anywhere.example>')).toMatch(/^454 4\.7\.1 /)
  })

  test('three wrong passwords disconnect', async () => {
    const world = await openSmtpd(settings)
    const client = await greetedOverTls(world)
    for (let i = 0; i < 2; i++) expect(await ask(client, plain('\0ann\0wrong'))).toMatch(/^535 /)
    client.socket.write(`${plain('\0ann\0wrong')}\r\n`)
    await heard(client, /535 [^\r]+\r\n421 4\.7\.0 relay\.example Error: too many errors\r\n$/)
    expect(world.of('client-failure').map(({ failure }) => failure)).toContainEqual({
      what: 'failed-login',
      method: 'PLAIN',
      username: 'ann',
    })
  })

  test('ends with XCLIENT, and a later failure names the new client', async () => {
    const world = await openSmtpd({ ...settings, mynetworks: [], smtpd_authorized_xclient_hosts: ['10.0.0.3'] })
    const client = await greetedOverTls(world, '10.0.0.3')
    const mayRelay = async (): Promise<string> => {
      for (const line of ['EHLO x', 'MAIL FROM:<a@b.example>']) await ask(client, line)
      const answer = await ask(client, 'RCPT TO:<bob@anywhere.example>')
      await ask(client, 'RSET')
      return answer
    }
    expect(await ask(client, plain('\0ann\0open sesame'))).toMatch(/^235 2\.7\.0 /)
    expect(await mayRelay()).toBe('250 2.1.5 Ok')
    expect(await ask(client, `XCLIENT NAME=mail.example ADDR=${OUTSIDER}`)).toMatch(/^220 /)
    expect(await mayRelay()).toMatch(/^454 4\.7\.1 /)
    expect(await ask(client, plain('\0ann\0wrong'))).toMatch(/^535 /)
    expect(await mayRelay()).toMatch(/^454 4\.7\.1 /)
    expect(world.of('client-failure')).toMatchObject([{ client: { name: 'mail.example', address: OUTSIDER } }])
    expect(await ask(client, plain('\0ann\0open sesame'))).toMatch(/^235 2\.7\.0 /)
    expect(await mayRelay()).toBe('250 2.1.5 Ok')
  })

  test('a failure behind a proxy names the client of its header', async () => {
    const world = await openSmtpd({ ...settings, smtpd_upstream_proxy_protocol: 'haproxy' })
    const client = await world.connect('10.0.0.3', `PROXY TCP4 ${OUTSIDER} 10.0.0.10 55555 25\r\n`)
    await client.say('EHLO x', 'STARTTLS')
    const secure = await encrypted(world, client)
    await ask(secure, 'EHLO x')
    expect(await ask(secure, plain('\0ann\0wrong'))).toMatch(/^535 /)
    expect(world.of('client-failure')).toMatchObject([
      { client: { address: OUTSIDER }, failure: { what: 'failed-login', method: 'PLAIN' } },
    ])
  })

  test('a failure names the client as the other lines of its session do', async () => {
    const dns = {
      lookupNames: () => ({ kind: 'found', records: ['mail.example'] }) as const,
      lookupAddresses: () => ({ kind: 'found', records: [OUTSIDER] }) as const,
    }
    const world = await openSmtpd({ ...settings, smtpd_peername_lookup: true }, dns)
    const client = await greetedOverTls(world)
    expect(await ask(client, plain('\0ann\0wrong'))).toMatch(/^535 /)
    expect(world.of('connected')).toMatchObject([{ client: { name: 'mail.example', address: OUTSIDER } }])
    expect(world.of('client-failure').flatMap((event) => postfixLines(event, { tlsStatus: false }).map(({ text }) => text))).toEqual([
      `warning: mail.example[${OUTSIDER}]: SASL PLAIN authentication failed: authentication failure, sasl_username=ann`,
    ])
  })

  test('a local error is not a wrong password', async () => {
    const world = await openSmtpd({ ...settings, smtpd_sasl_users_file: join(folder, 'nobody') })
    const client = await greetedOverTls(world)
    expect(await ask(client, plain('\0ann\0open sesame'))).toBe('454 4.7.0 Temporary authentication failure')
    expect(world.of('note')[0]?.text).toMatch(/^smtpd: cannot check a password: ENOENT/)
  })
})

describe('rate limits per client', () => {
  test.each([
    ['smtpd_client_message_rate_limit', 'MAIL FROM:<a@b.example>', `450 4.7.1 Error: too much mail from ${OUTSIDER}`],
    ['smtpd_client_recipient_rate_limit', 'RCPT TO:<ann@far.example>', `450 4.7.1 Error: too many recipients from ${OUTSIDER}`],
  ] as const)('%s', async (name, line, answer) => {
    const { connect, wait } = await openSmtpd({ relay_domains: ['far.example'], [name]: 2 })
    const client = await connect(OUTSIDER)
    const again = () => client.say('RSET', ...(line.startsWith('RCPT') ? ['MAIL FROM:<a@b.example>'] : []), line)
    await client.say('EHLO x')
    expect(await again()).toMatch(/^250 /)
    expect(await again()).toMatch(/^250 /)
    expect(await again()).toBe(answer)
    await wait(MINUTE)
    expect(await again()).toMatch(/^250 /)
  })

  test('smtpd_client_auth_rate_limit', async () => {
    const world = await openSmtpd({ ...settings, smtpd_client_auth_rate_limit: 2 })
    const login = async (password: string) => {
      const client = await greetedOverTls(world, OUTSIDER)
      const answer = await ask(client, plain(`\0ann\0${password}`))
      client.socket.destroy()
      return answer
    }
    expect(await login('wrong')).toMatch(/^535 /)
    expect(await login('wrong')).toMatch(/^535 /)
    // Beyond the limit no password is compared: the reply tells nothing about a guess.
    expect(await login('open sesame')).toBe(`450 4.7.1 Error: too many AUTH commands from ${OUTSIDER}`)
    await world.wait(MINUTE)
    expect(await login('open sesame')).toMatch(/^235 /)
  })

  test('smtpd_client_connection_rate_limit', async () => {
    const { connect, wait } = await openSmtpd({ smtpd_client_connection_rate_limit: 2 })
    const greeting = async (from: string) => {
      const client = await connect(from)
      client.socket.destroy()
      return client.heard.slice(0, 4)
    }
    for (const code of ['220 ', '220 ', '421 ']) expect(await greeting(OUTSIDER)).toBe(code)
    expect(await greeting('203.0.113.10')).toBe('220 ')
    for (let i = 0; i < 5; i++) expect(await greeting('127.0.0.1')).toBe('220 ')
    await wait(MINUTE)
    expect(await greeting(OUTSIDER)).toBe('220 ')
  })
})

describe('smtpd_tls_chain_files', () => {
  const filed = async (name: string, text: string): Promise<string> => {
    const path = join(folder, name)
    await writeFile(path, text)
    return path
  }
  const chains = (...paths: readonly string[]) => ({ ...settings, smtpd_tls_cert_file: '', smtpd_tls_chain_files: paths })

  test('has keys before their certificates, in files of their own or in one', async () => {
    const [key, cert] = [await filed('chain-key.pem', KEY), await filed('chain-cert.pem', CERTIFICATE + AUTHORITY)]
    const both = await filed('chain.pem', `# both\n${KEY}${CERTIFICATE}`)
    for (const config of [chains(key, cert), chains(both)]) {
      const [listener] = listenersOf({ ...defaultConfig('x').config, ...config })
      expect(readCertificate({ ...defaultConfig('x').config, ...config }, listener!)?.key).toHaveLength(1)
    }
    await expect(openSmtpd(chains(both, both))).resolves.toBeDefined()
  })

  test('a missing or early certificate is named', async () => {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    await expect(openSmtpd(chains(cert, key))).rejects.toThrow('a certificate is before its key; name the key first')
    await expect(openSmtpd(chains(key))).rejects.toThrow(`smtpd_tls_chain_files: ${key}: a key, or its certificate, is missing`)
  })
})

describe('configuration errors are reported in a sentence', () => {
  test.each([
    [{ smtpd_tls_cert_file: '' }, 'smtpd_tls_cert_file: a listener offers TLS, but there is no certificate'],
    [{ smtpd_tls_cert_file: '/nowhere/cert.pem' }, 'smtpd_tls_cert_file: cannot read /nowhere/cert.pem: ENOENT'],
    [{ smtpd_listen: ['nonsense'] }, 'smtpd_listen: expected an address and a port such as 127.0.0.1:2525 or [::1]:25, got nonsense'],
  ])('%j', async (wrong, sentence) => {
    await expect(openSmtpd({ ...settings, ...wrong })).rejects.toThrow(sentence)
  })
})

test('a trace shows no step of a login, and content that comes in place of a command by its size', async () => {
  const world = await openSmtpd(settings)
  const shown: string[] = []
  world.traces
    .reserve()
    ?.start(
      { direction: 'from', count: 1, for: MINUTE },
      { write: (entry) => void shown.push('text' in entry ? entry.text.slice(8) : 'dropped'), isBehind: () => false },
    )
  const secure = await greetedOverTls(world)
  const password = 'open sesame'
  const encoded = Buffer.from(password).toString('base64')
  await ask(secure, plain(`\u0000ann\u0000${password} no`))
  for (const line of ['AUTH LOGIN', Buffer.from('ann').toString('base64'), encoded]) await ask(secure, line)
  expect(await ask(secure, `the words ${password} of a mail`)).toMatch(/^5/)
  expect(shown.filter((text) => /^(?:C|\* TLS|S [2-5]3)/.test(text))).toEqual([
    'C EHLO x',
    'C STARTTLS',
    expect.stringMatching(/^\* TLSv1\.3 with TLS_\w+$/),
    'C EHLO x',
    'C AUTH PLAIN ****',
    'S 535 5.7.8 Error: authentication failed',
    'C AUTH LOGIN',
    'S 334 ****',
    'C ****',
    'S 334 ****',
    'C ****',
    'S 235 2.7.0 Authentication successful',
    'C [31 bytes]',
  ])
  const all = shown.join('\n')
  for (const secret of [password, encoded, 'words']) expect(all).not.toContain(secret)
})
