/** Clients behind a proxy that sends the PROXY protocol (smtpd_upstream_proxy_protocol = haproxy). */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { SystemNet } from '../../src/system/system-net.ts'
import { realClock } from '../support/real-clock.ts'
import { SECOND } from '../../src/system/clock.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { singleBytes } from '../support/segments.ts'
import { openSmtpd, OUTSIDER, startSmtpdOn } from '../support/smtpd-harness.ts'

const PROXIED = { smtpd_upstream_proxy_protocol: 'haproxy' } as const
const PROXY = '10.0.0.2'
const headerFor = (client: string): string => `PROXY TCP4 ${client} 10.0.0.10 55555 25\r\n`
const binary = (rest: string): Buffer => Buffer.from(`0d0a0d0a000d0a515549540a${rest}`, 'hex')
const GREETING = '220 relay.example ESMTP Deferd\r\n'
const LOCAL_ERROR = '421 4.3.0 relay.example Server local error\r\n'

test('the client of the header counts for mynetworks, log, refusals and the Received field', async () => {
  const { connect, of, intake } = await openSmtpd({ ...PROXIED, relay_domains: ['open.example'] })
  const client = await connect('127.0.0.1', headerFor(OUTSIDER))
  expect(client.heard).toBe(GREETING)
  expect(await client.say('EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>')).toMatch(/^454 4\.7\.1 /)
  await client.say('RCPT TO:<ann@open.example>', 'DATA', 'x', '.', 'QUIT')
  expect(intake.taken[0]?.text).toMatch(/^Received: from x \(unknown \[203\.0\.113\.9\]\)\r\n/)
  for (const kind of ['connected', 'refused', 'disconnected'] as const) {
    expect(of(kind)).toMatchObject([{ client: { name: 'unknown', address: OUTSIDER } }])
  }
})

test('the limits of clients apply to the client of the header', async () => {
  const { connect } = await openSmtpd({ ...PROXIED, smtpd_client_connection_count_limit: 1 })
  expect((await connect(PROXY, headerFor(OUTSIDER))).heard).toBe(GREETING)
  expect((await connect(PROXY, headerFor('203.0.113.10'))).heard).toBe(GREETING)
  expect((await connect(PROXY, headerFor(OUTSIDER))).heard).toMatch(/^421 4\.7\.0 .* too many connections from 203\.0\.113\.9\r\n$/)
})

test('a header may arrive byte by byte', async () => {
  const { connect } = await openSmtpd(PROXIED)
  for (const bytes of [Buffer.from(headerFor(OUTSIDER)), binary('2111000cc00002010a00000ad9030019')]) {
    const client = await connect(PROXY)
    await client.send(...singleBytes(bytes))
    expect(client.heard).toBe(GREETING)
  }
})

test.each([
  ['LOCAL', '20000000'],
  ['UNSPEC', '21000000'],
])('after a header of version 2 with %s, the address of the connection counts', async (_form, rest) => {
  const { connect, of } = await openSmtpd(PROXIED)
  const client = await connect(PROXY)
  expect(await client.send(binary(rest))).toBe(GREETING)
  expect(of('connected')).toEqual([{ kind: 'connected', client: { name: 'unknown', address: PROXY } }])
})

test.each([
  ['no header', 'EHLO x\r\n', 'unrecognized protocol header'],
  ['an unknown client', 'PROXY UNKNOWN\r\n', 'bad or missing protocol type'],
  ['a bad address', headerFor('203.0.113.999'), 'bad or missing client address'],
])('%s closes the connection with a log line', async (_what, sent, why) => {
  const { connect, of } = await openSmtpd(PROXIED)
  const client = await connect(PROXY, sent)
  expect([client.heard, client.closed]).toEqual([LOCAL_ERROR, true])
  expect(of('client-failure')).toEqual([
    { kind: 'client-failure', client: { name: 'unknown', address: PROXY }, failure: { what: 'proxy-header', why } },
  ])
  expect(of('connected')).toEqual([])
})

test('a header that is not complete within smtpd_upstream_proxy_timeout closes the connection with a log line', async () => {
  const { connect, wait, of } = await openSmtpd(PROXIED)
  const client = await connect(PROXY, 'PROXY TCP4')
  await wait(5 * SECOND - 1)
  expect(client.heard).toBe('')
  await wait(1)
  expect([client.heard, client.closed]).toEqual([LOCAL_ERROR, true])
  expect(of('client-failure')).toMatchObject([{ failure: { what: 'proxy-header', why: 'timeout error' } }])
})

test('a proxy that closes the connection early leaves a log line', async () => {
  const { connect, wait, of } = await openSmtpd(PROXIED)
  const client = await connect(PROXY, 'PROXY ')
  client.socket.end()
  await wait(0)
  expect(of('client-failure')).toMatchObject([{ failure: { what: 'proxy-header', why: 'EOF' } }])
})

test('what the client sends with the header came before the greeting', async () => {
  const { connect } = await openSmtpd(PROXIED)
  const client = await connect(PROXY, `${headerFor(OUTSIDER)}EHLO x\r\n`)
  expect(client.heard).toBe('554 5.5.0 Error: SMTP protocol synchronization\r\n')
})

test('a second header is a syntax error, and so is a header at a listener without the parameter', async () => {
  const behind = await openSmtpd(PROXIED)
  const client = await behind.connect(PROXY, headerFor(OUTSIDER))
  expect(await client.say(headerFor('127.0.0.1').trimEnd())).toBe('500 5.5.2 Error: command not recognized')
  const { connect, of } = await openSmtpd({ relay_domains: ['open.example'] })
  const late = await connect(OUTSIDER)
  expect(await late.say(headerFor('127.0.0.1').trimEnd())).toBe('500 5.5.2 Error: command not recognized')
  expect(await late.say('EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>')).toMatch(/^454 4\.7\.1 /)
  const early = await connect(OUTSIDER, headerFor('127.0.0.1'))
  expect(early.heard).toBe('554 5.5.0 Error: SMTP protocol synchronization\r\n')
  expect(of('connected').map((event) => event.client.address)).toEqual([OUTSIDER, OUTSIDER])
})

test('connections without a header count for smtpd_process_limit, and end with the server', async () => {
  const { connect, smtpd, of } = await openSmtpd({ ...PROXIED, smtpd_process_limit: 2 })
  const waiting = [await connect(PROXY), await connect(PROXY)]
  expect((await connect(PROXY)).heard).toBe('421 4.7.0 relay.example Error: too many connections\r\n')
  await smtpd.close(0)
  for (const client of waiting) await client.send('')
  expect(waiting.every(({ closed }) => closed)).toBe(true)
  expect(of('client-failure')).toHaveLength(1)
})

/** An SMTP server with a listener for TLS behind a proxy, at a port of this machine. */
async function tlsListener(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-proxy-'))
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  writeFileSync(cert, CERTIFICATE)
  writeFileSync(key, KEY)
  const { smtpd } = await startSmtpdOn(new SystemNet(), realClock, {
    smtpd_listen: [],
    smtpd: [
      { address: '127.0.0.1:0', tls: 'wrapper', auth: 'none', upstream_proxy_protocol: 'haproxy', class: '', settings: {}, positions: {} },
    ],
    smtpd_tls_cert_file: cert,
    smtpd_tls_key_file: key,
  })
  onTestFinished(async () => {
    await smtpd.close(0)
    rmSync(folder, { recursive: true })
  })
  return smtpd.listeners[0]?.port ?? 0
}

async function firstText(socket: Socket): Promise<string> {
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  return bytes.toString('latin1')
}

/** A stream over a connection that sends the header and the first bytes of the client in one packet. */
function withHeader(socket: Socket, header: string): Duplex {
  let before = Buffer.from(header)
  const stream = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      socket.write(Buffer.concat([before, chunk]), done)
      before = Buffer.alloc(0)
    },
  })
  socket.on('data', (bytes: Buffer) => stream.push(bytes))
  return stream
}

test.each(['in its own packet', 'with the first bytes of the handshake'])(
  'over a real connection, the header may come before a TLS handshake, %s',
  async (how) => {
    const socket = connectTcp({ host: '127.0.0.1', port: await tlsListener(), noDelay: true })
    await once(socket, 'connect')
    const isAlone = how === 'in its own packet'
    if (isAlone) socket.write(headerFor(OUTSIDER))
    const secure = connectTls({ socket: withHeader(socket, isAlone ? '' : headerFor(OUTSIDER)), rejectUnauthorized: false })
    expect(await firstText(secure)).toBe(GREETING)
    secure.write('EHLO x\r\n')
    expect(await firstText(secure)).toMatch(/^250-relay\.example\r\n/)
    socket.destroy()
  },
)
