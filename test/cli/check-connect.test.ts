/** `deferd check --connect` before scripted servers on loopback. */
import { createServer, type Server } from 'node:net'
import { writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Operator } from '../support/operator.ts'

let operator: Operator
let server: Server | undefined
const commands: string[] = []
beforeEach(() => {
  operator = new Operator()
})
afterEach(() => {
  server?.close()
  server = undefined
  operator.leave()
  commands.length = 0
})

/** A server that answers AUTH with `auth`. Returns its port. */
async function listen(auth: string): Promise<number> {
  const opened = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.write('220 relay ESMTP\r\n')
    socket.on('data', (data) => {
      for (const line of String(data)
        .split('\r\n')
        .filter((part) => part !== '')) {
        commands.push(line.split(' ', 1)[0] ?? '')
        socket.write(line.startsWith('EHLO') ? '250-relay\r\n250 AUTH PLAIN\r\n' : line.startsWith('AUTH') ? `${auth}\r\n` : '221 bye\r\n')
      }
    })
  })
  server = opened
  await new Promise<void>((resolve) => void opened.listen(0, '127.0.0.1', resolve))
  return (opened.address() as AddressInfo).port
}

async function check(port: number) {
  const passwords = join(operator.directory, 'passwords')
  writeFileSync(passwords, `[127.0.0.1]:${port} ann:secret\n`, { mode: 0o600 })
  const settings = [`relayhost=[127.0.0.1]:${port}`, `smtp_sasl_password_maps=${passwords}`, 'smtp_sasl_security_options=']
  const { code, out } = await operator.run(['check', '--connect', ...settings.flatMap((one) => ['-o', one])])
  return { code, line: out.split('\n').find((text) => / relayhost /.test(text)) }
}

test('logs in and sends no mail', async () => {
  const port = await listen('235 2.7.0 welcome')
  expect(await check(port)).toEqual({
    code: 0,
    line: expect.stringContaining(`127.0.0.1[127.0.0.1]:${port}: no TLS, logged in as ann`) as string,
  })
  expect(commands.filter((command) => command !== 'QUIT')).toEqual(['EHLO', 'AUTH'])
})

test('a refused login, and a server that is down, are errors', async () => {
  const port = await listen('535 5.7.8 wrong')
  expect(await check(port)).toEqual({
    code: 69,
    line: expect.stringMatching(
      /^error .*SASL authentication failed; .* 535 5\.7\.8 wrong\. Wrong user, password or token: correct smtp_sasl_password_maps, /,
    ) as string,
  })
  await new Promise((resolve) => server?.close(resolve))
  expect(await check(port)).toEqual({ code: 69, line: expect.stringMatching(/^error .*Connection refused$/) as string })
})

test.each([
  ['[127.0.0.1]:465', [], true],
  ['[127.0.0.1]:465', ['smtp_tls_wrappermode=yes', 'smtp_tls_security_level=encrypt'], false],
  ['[127.0.0.1]:587', [], false],
] as const)('relayhost %s with %j: a warning that TLS starts at once: %s', async (relayhost, settings, warned) => {
  const options = [`relayhost=${relayhost}`, ...settings].flatMap((one) => ['-o', one])
  const { code, out } = await operator.run(['check', ...options])
  expect(code).toBe(0)
  expect(/^warning next hops +relayhost \[127\.0\.0\.1\]:465 expects TLS at once: /m.test(out)).toBe(warned)
})
