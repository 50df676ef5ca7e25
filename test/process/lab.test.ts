/** The process of `deferd lab`: its first line, its ports, and its ends. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createTransport } from 'nodemailer'
import { afterEach, expect, test } from 'vitest'

const PROGRAM = join(import.meta.dirname, '../../bin/deferd.js')

const started = new Set<ChildProcess>()
afterEach(() => {
  for (const child of started) child.kill('SIGKILL')
  started.clear()
})

function start(...args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [PROGRAM, 'lab', ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
  started.add(child)
  return child
}

interface First {
  readonly http: string
  readonly pid: number
  readonly smtp?: string
}

async function firstLine({ stdout }: ChildProcess): Promise<First> {
  if (stdout === null) throw new Error('the process has no output')
  for await (const line of createInterface(stdout)) return JSON.parse(line) as First
  throw new Error('the process has written nothing')
}

/** The exit code, and the text on standard error. */
async function end(child: ChildProcess): Promise<{ readonly code: number | null; readonly err: string }> {
  let err = ''
  child.stderr?.on('data', (text: Buffer) => (err += text.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, err }
}

const call = async (url: string, body?: object): Promise<Record<string, unknown>> => {
  const response = await fetch(
    url,
    body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
  )
  return (await response.json()) as Record<string, unknown>
}

/** Runs the same story in a lab, and returns the hash. */
async function hashOf(http: string): Promise<unknown> {
  const { id, smtp } = (await call(`${http}/lab/v1/worlds`, { seed: 5 })) as { id: string; smtp: { host: string; port: number } }
  const world = `${http}/lab/v1/worlds/${id}`
  await call(`${world}/rules`, { domain: 'x.example', at: 'rcpt', probability: '50%', reply: '451 4.3.0 later' })
  const transport = createTransport({ ...smtp, ignoreTLS: true })
  const to = Array.from({ length: 20 }, (_, n) => `user${n}@x.example`)
  await transport.sendMail({ envelope: { from: 'app@us.example', to }, raw: 'Subject: hi\r\n\r\nhello\r\n' })
  transport.close()
  await call(`${world}/clock/settle`, { after: { accepted: 1 } })
  return (await call(`${world}/history`))['hash']
}

test('two processes have equal hashes for equal seeds and calls, and end with code 0 at SIGTERM', async () => {
  const labs = [start('--http', '0'), start('--http', '0')]
  const hashes = await Promise.all(labs.map(async (lab) => hashOf((await firstLine(lab)).http)))
  expect(hashes[0]).toMatch(/^[\da-f]{64}$/)
  expect(hashes[1]).toBe(hashes[0])
  const began = performance.now()
  for (const lab of labs) lab.kill('SIGTERM')
  expect((await Promise.all(labs.map(end))).map(({ code }) => code)).toEqual([0, 0])
  // 2 s on an idle machine.
  expect(performance.now() - began).toBeLessThan(20_000)
})

test('with --parent the process ends with its standard input', async () => {
  const lab = start('--http', '0', '--parent')
  const { http, pid } = await firstLine(lab)
  expect(pid).toBe(lab.pid)
  await call(`${http}/lab/v1/worlds`, {})
  lab.stdin?.end()
  expect((await end(lab)).code).toBe(0)
})

test('a port that is in use is not taken', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  for (const args of [
    ['--http', String(port)],
    ['--http', '0', '--smtp', String(port)],
  ]) {
    const { code, err } = await end(start(...args))
    expect([code, err]).toEqual([69, expect.stringMatching(/^deferd: cannot listen \(.*EADDRINUSE.*; name another port\n$/)])
  }
  server.close()
})

test('beyond loopback a lab needs a private token and the consent to send it without TLS', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lab-'))
  const token = join(folder, 'token')
  writeFileSync(token, 'a-token-of-the-lab-of-tests\n', { mode: 0o644 })
  const ends = async (...args: readonly string[]) => end(start('--http', '0.0.0.0:0', ...args))
  expect(await ends()).toEqual({ code: 78, err: expect.stringContaining('add --token-file') })
  expect(await ends('--token-file', token)).toEqual({ code: 78, err: expect.stringContaining('others may read') })
  chmodSync(token, 0o600)
  expect(await ends('--token-file', token)).toEqual({ code: 78, err: expect.stringContaining('add --insecure') })
})

test('the world of --smtp is there from the start, and a script with mistakes is refused', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lab-'))
  const script = join(folder, 'faults.toml')
  writeFileSync(script, '[rule.a]\ndomain = "x.example"\nat = "rcpt"\nreply = "451 4.3.0 later"\nfirst = 1\n')
  const lab = start('--http', '0', '--smtp', '0', '--script', script, '--speed', '3600', '--json')
  const { http, smtp } = await firstLine(lab)
  const [host = '', port] = smtp?.split(':') ?? []
  const transport = createTransport({ host, port: Number(port), ignoreTLS: true })
  await transport.sendMail({ from: 'app@us.example', to: 'ann@x.example', text: 'hello' })
  transport.close()
  expect(await call(`${http}/lab/v1/worlds/default/mailboxes/ann@x.example/wait?within=30s`)).toMatchObject({ to: ['ann@x.example'] })
  writeFileSync(script, '[rule.a]\nfoo = 1\nat = "x"\n')
  const { code, err } = await end(start('--http', '0', '--smtp', '0', '--script', script))
  expect(code).toBe(78)
  expect(err.split('\n').filter((line) => line.includes('rule a'))).toHaveLength(2)
  expect(await end(start('--http', '0', '--seed', '3'))).toEqual({ code: 64, err: expect.stringContaining('add --smtp') })
})
