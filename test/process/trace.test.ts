/** `deferd trace` at a running daemon, in both directions, and the dialogue that it keeps of a failed delivery. */
import { createServer, type AddressInfo, type Server } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { Operator } from '../support/operator.ts'
import { PageDaemon } from '../support/page-daemon.ts'
import { ScriptedServer } from '../support/scripted-server.ts'

let remote: Server
let daemon: PageDaemon
const operator = new Operator()

beforeAll(async () => {
  const script = { ehlo: '250-far.example\r\n250 PIPELINING', rcpt: '550 5.1.1 no such user' }
  remote = createServer(new ScriptedServer('far.example', script).accept)
  await new Promise<void>((resolve) => void remote.listen(0, '127.0.0.1', resolve))
  daemon = await PageDaemon.start({ relayhost: `[127.0.0.1]:${(remote.address() as AddressInfo).port}` })
})
afterAll(async () => {
  await daemon.close()
  operator.leave()
  await new Promise<void>((resolve) => void remote.close(() => resolve()))
})

const trace = (...options: readonly string[]) => operator.run(['trace', '-o', `queue_directory=${daemon.queueDirectory}`, ...options])

/** Waits for the record of a trace in the audit log, which is written before it starts. */
async function traces(count: number): Promise<readonly string[]> {
  const reader = openQueueReader(daemon.queueDirectory)
  try {
    for (;;) {
      const found = (await reader.records.audit.after({ after: 0, limit: 100 })).filter(({ action }) => action === 'trace')
      if (found.length >= count) return found.map((record) => record.arguments)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  } finally {
    await reader.close()
  }
}

const mail = { from: 'app@shop.example', to: 'ann@far.example', subject: 'a word of the mail' }

/** Sends mail until the trace has ended: a trace starts after its record is written. */
async function whileSending<T>(running: Promise<T>): Promise<T> {
  const pause = () => new Promise<null>((resolve) => setTimeout(() => resolve(null), 100))
  for (;;) {
    await daemon.send([mail])
    const ended = await Promise.race([running, pause()])
    if (ended !== null) return ended
  }
}

test('a delivery is shown with its reply and without its content', { timeout: 60_000 }, async () => {
  const running = trace('--destination', '*', '--recipient', 'ann@far.example', '--count', '1')
  expect(await traces(1)).toEqual(['--destination * --recipient ann@far.example --count 1 --for 10m'])
  const { code, out, err } = await whileSending(running)
  expect([code, err]).toEqual([0, ''])
  expect(out).toMatch(/^1: # deferd session, smtp to 127\.0\.0\.1\[127\.0\.0\.1\]:\d+, /)
  expect(out).toMatch(/^1: +\d+ S 550 5\.1\.1 no such user$/m)
  expect(out).not.toContain('a word of the mail')
})

test('mail that is received is shown from the greeting to QUIT', { timeout: 60_000 }, async () => {
  const running = trace('--smtpd', '--sender', '*@shop.example', '--count', '1', '--json')
  await traces(2)
  const { code, out } = await whileSending(running)
  expect(code).toBe(0)
  const texts = out
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { readonly text: string }).text)
  expect(texts[0]).toMatch(/^# deferd session, smtp from unknown\[127\.0\.0\.1\]:\d+, /)
  expect(texts.map((text) => text.slice(8)).filter((text) => /^(?:\*|C|S 220)/.test(text))).toEqual([
    expect.stringMatching(/^\* connected to 127\.0\.0\.1$/),
    expect.stringMatching(/^S 220 /),
    'C EHLO client.example',
    'C MAIL FROM:<app@shop.example>',
    'C RCPT TO:<ann@far.example>',
    'C DATA',
    expect.stringMatching(/^C \[\d+ bytes\]$/),
    'C QUIT',
  ])
  expect(out).not.toContain('a word of the mail')
})

test('a fourth trace is refused, without a record; those that are left end with their time', { timeout: 60_000 }, async () => {
  const three = [1, 2, 3].map((count) => trace('--destination', 'none.example', '--for', '10s', '--count', String(count)))
  await traces(5)
  const refused = await trace('--destination', 'none.example', '--for', '1s')
  expect([refused.code, refused.err]).toEqual([75, 'deferd: 3 traces run already: wait until one ends, or stop it\n'])
  for (const { code, err } of await Promise.all(three)) expect([code, err]).toEqual([75, 'deferd: no such session began within 10s\n'])
  expect(await traces(5)).toHaveLength(5)
})

test('options that no session can fit are refused', async () => {
  expect(await trace('--smtpd', '--destination', 'x')).toMatchObject({ code: 64, err: expect.stringContaining('--destination') as string })
  expect(await trace('--listener', 'x')).toMatchObject({ code: 64, err: expect.stringContaining('--smtpd') as string })
  expect((await trace('--count', '0')).code).toBe(64)
  expect((await operator.run(['trace', '-o', `queue_directory=${operator.directory}`])).code).toBe(69)
})

test('deferd queue show --session prints the dialogue that was kept of a failed delivery', { timeout: 60_000 }, async () => {
  const at = ['-o', `queue_directory=${daemon.queueDirectory}`] as const
  await daemon.send([{ ...mail, to: 'kept@far.example' }])
  const returned = async () =>
    (await operator.run(['history', 'list', ...at, '--recipient', 'kept@far.example', '--json'])).out
      .split('\n')
      .filter((line) => line !== '')
  await expect.poll(returned, { timeout: 20_000 }).toHaveLength(1)
  const { queue_id: id } = JSON.parse((await returned())[0] ?? '') as { readonly queue_id: string }
  const { code, out } = await operator.run(['queue', 'show', ...at, id, '--session'])
  expect(code).toBe(0)
  expect(out).toMatch(/^# deferd session, smtp to 127\.0\.0\.1\[127\.0\.0\.1\]:\d+, /)
  // Equal failures within a minute share the first dialogue.
  expect(out).toMatch(/C RCPT TO:<(?:ann|kept)@far\.example>[^]*S 550 5\.1\.1 no such user$/m)
  expect(out).not.toContain('a word of the mail')
})
