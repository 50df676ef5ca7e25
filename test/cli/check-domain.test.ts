/** `deferd check domain`: arguments, exit codes, and a next hop on loopback. */
import { createServer, type AddressInfo, type Server } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Operator } from '../support/operator.ts'

let operator: Operator
let server: Server | undefined
beforeEach(() => {
  operator = new Operator()
})
afterEach(() => {
  server?.close()
  server = undefined
  operator.leave()
})

/** Name servers that refuse every question. */
const NO_DNS = ['-o', 'dns_servers=127.0.0.1:9']

async function listen(commands: string[]): Promise<number> {
  const opened = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.write('220 relay ESMTP\r\n')
    socket.on('data', (data) => {
      commands.push(String(data).split(/[ \r]/, 1)[0] ?? '')
      socket.write(String(data).startsWith('EHLO') ? '250 relay\r\n' : '221 bye\r\n')
    })
  })
  server = opened
  await new Promise<void>((resolve) => void opened.listen(0, '127.0.0.1', resolve))
  return (opened.address() as AddressInfo).port
}

test('a failed look-up ends with 75, before there is a queue and with one', async () => {
  for (const prepare of [() => Promise.resolve(), () => operator.own(() => Promise.resolve())]) {
    await prepare()
    const { code, out } = await operator.run(['check', 'domain', 'FAR.example.', '--from', 'app@us.example', ...NO_DNS])
    expect(out).toMatch(/^far\.example, 2026-/)
    expect(out).toMatch(/^unknown {2}MX /m)
    expect(out.replaceAll(/\n +/g, ' ')).toMatch(/\nmail to far\.example now: deferred \(4\.4\.3\): .*\n$/)
    expect(code).toBe(75)
  }
})

test('a relayhost is connected to, and no mail is sent', async () => {
  const commands: string[] = []
  const port = await listen(commands)
  const { code, out } = await operator.run(['check', 'domain', 'far.example', '--json', ...NO_DNS, '-o', `relayhost=[127.0.0.1]:${port}`])
  expect(JSON.parse(out)).toMatchObject({
    domain: 'far.example',
    verdict: 'unknown',
    mail: { outcome: 'sent', waits: false, relay: `127.0.0.1[127.0.0.1]:${port}`, tls: { level: 'may', state: 'clear' } },
    next_hops: [{ next_hop: `[127.0.0.1]:${port}`, origin: 'relayhost' }],
    mx: null,
    mta_sts: null,
  })
  // DMARC of the sender cannot be looked up.
  expect(code).toBe(75)
  expect(commands.filter((command) => command !== 'QUIT')).toEqual(['EHLO'])
})

test('the domain of the sender is looked up as A-labels', async () => {
  const { out } = await operator.run(['check', 'domain', 'far.example', '--from', 'app@Bücher.example', '--json', ...NO_DNS])
  expect(JSON.parse(out)).toMatchObject({ sender: { domain: 'xn--bcher-kva.example' } })
})

test('what is no domain is refused, and so is a configuration that cannot be used', async () => {
  expect(await operator.run(['check', 'domain', 'far example'])).toMatchObject({
    code: 64,
    err: expect.stringContaining('"far example" is not the name of a domain') as string,
  })
  expect(await operator.run(['check', 'domain', 'far.example', '--from', 'a@b c'])).toMatchObject({ code: 64 })
  expect(await operator.run(['check', 'domain', 'far.example', '-o', 'smtp_tls_CAfile=/nowhere/ca.pem'])).toMatchObject({
    code: 78,
    err: expect.stringContaining('/nowhere/ca.pem') as string,
  })
})
