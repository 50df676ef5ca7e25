import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { addSink } from '../../src/cli/commands/sink.ts'
import type { Shell } from '../../src/cli/shell.ts'
import { seededRandom } from '../../src/mail/random.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemNet } from '../../src/system/net.ts'
import { readScript } from '../../src/testkit/far-side/script.ts'
import { Sink } from '../../src/testkit/sink.ts'

async function openSink(script: string | null, names = ['sink']) {
  const events: Record<string, unknown>[] = []
  const sink = new Sink({
    net: systemNet,
    clock: systemClock,
    random: seededRandom(1),
    ports: names.map((mx) => ({ at: { address: '127.0.0.1', port: 0 }, mx })),
    script: script === null ? null : readScript(script, 'faults.toml'),
    print: (event) => events.push(event as Record<string, unknown>),
  })
  const ports = await sink.open()
  const send = async (to: string, port = ports[0]?.port ?? 0): Promise<string> => {
    const transport = createTransport({ host: '127.0.0.1', port, ignoreTLS: true })
    try {
      return (await transport.sendMail({ from: 'app@us.example', to, text: 'hello' })).response
    } catch (error) {
      return error instanceof Error ? ((error as { response?: string }).response ?? error.message) : String(error)
    } finally {
      transport.close()
    }
  }
  return { sink, events, ports, send }
}

test('a client on TCP gets what addresses ask for, and the sink tells of it', async () => {
  const { sink, events, send } = await openSink(null)
  expect(await send('ann@any.example')).toMatch(/^250 2\.0\.0/)
  expect(await send('550+5.1.1+nobody@any.example')).toBe('550 5.1.1 nobody')
  expect(await send('first-1+451@any.example')).toMatch(/^451/)
  expect(await send('first-1+451@any.example')).toMatch(/^250/)
  expect(await send('first-1+drop-after-dot@any.example')).toMatch(/closed/i)
  await sink.close()
  expect(sink.summary()).toMatchObject({
    connections: 5,
    messages_kept: 3,
    kept_but_not_told: 1,
    rules: { '550+5.1.1+nobody': 1, 'first-1+451': 1, 'first-1+drop-after-dot': 1 },
  })
  expect(events.filter(({ event }) => event === 'message').map(({ kept, told }) => [kept, told])).toEqual([
    [true, 250],
    [true, 250],
    [true, null],
  ])
  expect(events[0]).toMatchObject({
    event: 'connected',
    session: 1,
    mx: 'sink',
    client: '127.0.0.1',
    time: expect.stringMatching(/^\d{4}-/),
  })
})

test('a script holds on TCP as in a world, and hosts are told apart by name', async () => {
  const { sink, events, ports, send } = await openSink(
    `rule.down = { mx = "mx1.*", connect = "refused" }
     rule.garbage = { at = "greeting", mx = "mx3.*", raw = "\\u0000\\u00ff\\r\\n", drop = "rst" }
     rule.full = { domain = "them.example", at = "rcpt", reply = "452 4.2.2 full" }`,
    ['mx1.them.example', 'mx2.them.example', 'mx3.them.example'],
  )
  expect(await send('ann@them.example', ports[0]?.port)).toMatch(/ECONNRESET|closed/i)
  expect(await send('ann@them.example', ports[1]?.port)).toBe('452 4.2.2 full')
  expect(await send('ann@other.example', ports[1]?.port)).toMatch(/^250/)
  expect(await send('ann@other.example', ports[2]?.port)).not.toMatch(/^250/)
  await sink.close()
  expect(sink.summary()).toMatchObject({ refused_connections: 1, messages_kept: 1, rules: { down: 1, full: 1, garbage: 1 } })
  expect(events.find(({ event }) => event === 'refused')).toMatchObject({ mx: 'mx1.them.example', how: 'refused', rule: 'down' })
})

test('a connection that would time out is kept in silence, until the sink closes', async () => {
  const { sink, ports } = await openSink('rule.silent = { connect = "timeout" }')
  const [at] = ports
  const socket = await systemNet.dial({ address: at?.address ?? '', port: at?.port ?? 0, timeout: 1_000 })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', () => undefined)
  let heard = 0
  socket.on('data', (bytes: Buffer) => (heard += bytes.length))
  await new Promise((resolve) => setTimeout(resolve, 30))
  expect(socket.destroyed).toBe(false)
  await sink.close()
  await closed
  expect(heard).toBe(0)
})

/** Runs the command in this process; `stop` is the signal. */
function runCommand(args: readonly string[]) {
  const printed = { stdout: '', stderr: '' }
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
  const output = (name: keyof typeof printed) => ({
    columns: null,
    write: async (data: string | Uint8Array) => void (printed[name] += String(data)),
  })
  const shell = { clock: systemClock, stdout: output('stdout'), stderr: output('stderr'), untilStopped: () => stopped }
  const program = new Command().exitOverride().configureOutput({ writeErr: () => undefined })
  addSink(program, shell as unknown as Shell)
  const done = program.parseAsync(['sink', ...args], { from: 'user' })
  return { printed, stop, done }
}

test('the command prints one JSON object per line and ends with a summary', async () => {
  const { printed, stop, done } = runCommand(['--listen', '127.0.0.1:0'])
  while (!printed.stderr.includes('\n')) await new Promise((resolve) => setTimeout(resolve, 5))
  const port = Number(/takes mail on 127\.0\.0\.1:(\d+)/.exec(printed.stderr)?.[1])
  await expect(
    createTransport({ host: '127.0.0.1', port }).sendMail({ from: 'a@us.example', to: '551@x.example', text: '' }),
  ).rejects.toThrow('551')
  stop()
  await done
  const lines = printed.stdout.trimEnd().split('\n')
  const events = lines.map((line) => JSON.parse(line) as { readonly event: string })
  expect(events.at(0)?.event).toBe('connected')
  expect(events.at(-1)).toMatchObject({ event: 'summary', connections: 1, messages_kept: 0, replies: { 551: 1 }, rules: { 551: 1 } })
  expect(printed.stderr).toContain('1 connection taken, 0 refused; 0 messages for 0 recipients kept\n')
  expect(printed.stderr).toContain('rules that acted: 551 × 1\n')
})

test('the command refuses a script with mistakes, with file and line, and a port that is taken', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'deferd-sink-')), 'bad.toml')
  writeFileSync(file, '[rule.x]\nat = "rcpt"\nrepply = "450 no"\n')
  await expect(runCommand(['--script', file]).done).rejects.toMatchObject({
    exitCode: 78,
    message: 'bad.toml:3: rule x: there is no repply; did you mean reply?',
  })
  const { sink, ports } = await openSink(null)
  await expect(runCommand(['--listen', `127.0.0.1:${ports[0]?.port}`]).done).rejects.toMatchObject({ exitCode: 69 })
  await expect(runCommand(['--listen', 'nonsense']).done).rejects.toThrow('expected an address and a port')
  await expect(runCommand(['--script', '/nowhere.toml']).done).rejects.toMatchObject({ exitCode: 65 })
  await sink.close()
})
