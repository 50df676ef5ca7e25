import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { addSink } from '../../../src/cli/commands/sink.ts'
import type { Shell } from '../../../src/cli/shell/shell.ts'
import { askAuthority } from '../../../src/oauth/authority.ts'
import { seededRandom } from '../../../src/system/random.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { realClock } from '../../support/real-clock.ts'
import { systemRandom } from '../../../src/system/system-random.ts'
import { systemNet } from '../../../src/system/system-net.ts'
import { readScript } from '../../../src/testkit/remote/script.ts'
import { makeCertificate } from '../../../src/testkit/remote/certificate-maker.ts'
import { Sink } from '../../../src/testkit/scripted/sink.ts'

async function openSink(script: string | null, names = ['sink']) {
  const events: Record<string, unknown>[] = []
  const sink = new Sink({
    net: systemNet,
    clock: systemClock,
    random: seededRandom(1),
    ports: names.map((mx) => ({ at: { address: '127.0.0.1', port: 0 }, mx })),
    script: script === null ? null : readScript(script, 'faults.toml'),
    print: (event) => events.push(event),
  })
  const { ports } = await sink.open()
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

test('a client on TCP gets the replies named by its addresses, and the sink reports them', async () => {
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
    kept_unacknowledged: 1,
    rules: { '550+5.1.1+nobody': 1, 'first-1+451': 1, 'first-1+drop-after-dot': 1 },
  })
  expect(events.filter(({ event }) => event === 'message').map(({ kept, reply_code }) => [kept, reply_code])).toEqual([
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

test('a script works on TCP as in a world, and hosts are distinguished by name', async () => {
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

test('a connection that times out by rule stays open without a reply until the sink closes', async () => {
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

test('rules of a script act first, addresses where none does', async () => {
  const { sink, send } = await openSink('rule.full = { domain = "them.example", at = "rcpt", reply = "452 4.2.2 full" }')
  expect(await send('550@them.example')).toBe('452 4.2.2 full')
  expect(await send('550@other.example')).toBe('550 5.0.0 as you wish')
  await sink.close()
})

/** Runs the command in this process; `stop` is the signal. */
function runCommand(args: readonly string[], columns: number | null = null) {
  const printed = { stdout: '', stderr: '' }
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
  const output = (name: keyof typeof printed) => ({
    columns,
    write: async (data: string | Uint8Array) => void (printed[name] += String(data)),
  })
  const shell = {
    clock: systemClock,
    random: systemRandom,
    uid: process.getuid?.() ?? 0,
    stdout: output('stdout'),
    stderr: output('stderr'),
    untilStopped: () => stopped,
  }
  const program = new Command().exitOverride().configureOutput({ writeErr: () => undefined })
  addSink(program, shell as unknown as Shell)
  const done = program.parseAsync(['sink', ...args], { from: 'user' })
  return { printed, stop, done }
}

test('the command prints one JSON object per line and ends with a summary', async () => {
  const { printed, stop, done } = runCommand(['--listen', '127.0.0.1:0'])
  while (!printed.stderr.includes('\n')) await new Promise((resolve) => setTimeout(resolve, 5))
  const port = Number(/listens on 127\.0\.0\.1:(\d+)/.exec(printed.stderr)?.[1])
  await expect(
    createTransport({ host: '127.0.0.1', port }).sendMail({ from: 'a@us.example', to: '551@x.example', text: '' }),
  ).rejects.toThrow('551')
  stop()
  await done
  const lines = printed.stdout.trimEnd().split('\n')
  const events = lines.map((line) => JSON.parse(line) as { readonly event: string })
  expect(events.at(0)?.event).toBe('connected')
  expect(events.at(-1)).toMatchObject({ event: 'summary', connections: 1, messages_kept: 0, replies: { 551: 1 }, rules: { 551: 1 } })
  expect(printed.stderr).toContain('1 connection accepted, 0 refused; 0 messages for 0 recipients stored\n')
  expect(printed.stderr).toContain('rules applied: 551 × 1\n')
})

test('on a terminal, the command prints lines and keeps messages for sink show', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-sink-'))
  const { printed, stop, done } = runCommand(['--listen', '127.0.0.1:0', '--keep', folder], 80)
  while (!printed.stderr.includes('\n')) await new Promise((resolve) => setTimeout(resolve, 5))
  const port = Number(/listens on 127\.0\.0\.1:(\d+)/.exec(printed.stderr)?.[1])
  const transport = createTransport({ host: '127.0.0.1', port })
  await transport.sendMail({ from: 'a@us.example', to: 'ann@x.example', text: 'first \u001b[31mred' })
  await expect(transport.sendMail({ from: 'a@us.example', to: '551@x.example', text: '' })).rejects.toThrow('551')
  await expect(transport.sendMail({ from: 'a@us.example', to: 'after-dot+554@x.example', text: '' })).rejects.toThrow('554')
  stop()
  await done
  expect(printed.stdout.replaceAll(/^\d\d:\d\d:\d\d {2}/gm, '').replaceAll(/\d+ B/g, 'N B')).toBe(
    [
      'message 1 from a@us.example to ann@x.example, N B, reply 250',
      'RCPT TO:<551@x.example>: 551 5.0.0 as you wish (rule 551)',
      'at end-of-data: 554 5.0.0 as you wish (rule after-dot+554)',
      'message discarded: from a@us.example to after-dot+554@x.example, N B, reply 554',
      '',
    ].join('\n'),
  )
  const shown = runCommand(['show', '1', '--keep', folder], 80)
  await shown.done
  expect(shown.printed.stdout).toMatch(/^From: a@us\.example$/m)
  expect(shown.printed.stdout).not.toContain('\u001b')
  const piped = runCommand(['show', '1', '--keep', folder])
  await piped.done
  expect(piped.printed.stdout).toContain('\r\n')
  await expect(runCommand(['show', '2', '--keep', folder]).done).rejects.toThrow(`there is no message 2 in ${folder}; stored are 1 to 1`)
  writeFileSync(join(folder, 'file'), '')
  await expect(runCommand(['--keep', join(folder, 'file')]).done).rejects.toThrow('name another folder with --keep')
})

/** Starts the command on a free port. */
async function startCommand(...args: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-sink-'))
  const run = runCommand(['--listen', '127.0.0.1:0', '--keep', folder, ...args])
  await expect.poll(() => run.printed.stderr, { timeout: 30_000 }).toMatch(/listens on .*\n/)
  const port = Number(/listens on 127\.0\.0\.1:(\d+)/.exec(run.printed.stderr)?.[1])
  const send = async (options: object, to = 'ann@far.example'): Promise<string> => {
    const transport = createTransport({ host: '127.0.0.1', port, ...options })
    try {
      return (await transport.sendMail({ from: 'app@us.example', to, text: 'hi' })).response
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    } finally {
      transport.close()
    }
  }
  const events = () => run.printed.stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]))
  return { ...run, folder, port, send, events }
}

test('--tls and --auth suit a client that is configured as in production', async () => {
  const sink = await startCommand('--tls', '--auth', 'app:secret')
  const ca = readFileSync(join(sink.folder, 'ca.pem'), 'utf8')
  expect(sink.printed.stderr).toContain(`STARTTLS with a certificate of the CA in ${join(sink.folder, 'ca.pem')}\n`)
  const tls = { requireTLS: true, tls: { ca } }
  expect(await sink.send({ ...tls, auth: { user: 'app', pass: 'secret' } })).toMatch(/^250/)
  expect(await sink.send({ ...tls, auth: { user: 'app', pass: 'secret' }, authMethod: 'LOGIN' })).toMatch(/^250/)
  expect(await sink.send({ ...tls, auth: { user: 'app', pass: 'wrong' } })).toMatch(/535 5\.7\.8/)
  expect(await sink.send({ ...tls, auth: { user: 'app', pass: 'wrong' }, authMethod: 'LOGIN' })).toMatch(/535 5\.7\.8/)
  expect(await sink.send({ requireTLS: true })).toMatch(/self-signed|unable to verify|issuer/)
  expect(await sink.send({ ignoreTLS: true })).toMatch(/^250/)
  expect(await sink.send({ ...tls, auth: { user: 'app', pass: 'secret' } }, '550@far.example')).toMatch(/550 5\.0\.0/)
  sink.stop()
  await sink.done
  expect(sink.printed.stdout).not.toContain('secret')
  // The next sink with the folder has the same CA.
  const again = runCommand(['--listen', '127.0.0.1:0', '--keep', sink.folder, '--tls'])
  await expect.poll(() => again.printed.stderr, { timeout: 30_000 }).toContain('STARTTLS with')
  expect(readFileSync(join(sink.folder, 'ca.pem'), 'utf8')).toBe(ca)
  again.stop()
  await again.done
})

test('the summary is the last line, also while a connection is open', async () => {
  const sink = await startCommand()
  const transport = createTransport({ host: '127.0.0.1', port: sink.port, pool: true })
  await transport.sendMail({ from: 'app@us.example', to: 'ann@far.example', text: 'hi' })
  sink.stop()
  await sink.done
  await new Promise((resolve) => setTimeout(resolve, 50))
  transport.close()
  expect(sink.events().at(-1)?.['event']).toBe('summary')
})

test('--tls-cert has the certificate of the files, and --auth alone accepts any login', async () => {
  const own = makeCertificate({ seed: 'own', names: ['127.0.0.1'] })
  const file = join(mkdtempSync(join(tmpdir(), 'deferd-sink-')), 'own.pem')
  writeFileSync(file, `${own.cert}${own.key}`)
  const sink = await startCommand('--tls', '--tls-cert', file, '--auth')
  expect(await sink.send({ requireTLS: true, tls: { ca: own.cert }, auth: { user: 'any', pass: 'any' } })).toMatch(/^250/)
  sink.stop()
  await sink.done
  await expect(runCommand(['--tls', '--tls-cert', import.meta.filename]).done).rejects.toMatchObject({
    exitCode: 78,
    message: expect.stringContaining('are no certificate and its key'),
  })
})

test.each<[readonly string[], string]>([
  [['--tls-key', 'x'], '--tls-key needs --tls-cert'],
  [['--tls-cert', 'x'], '--tls-cert needs --tls'],
  [['--oauth', '--auth'], '--auth and --oauth exclude each other'],
  [['--oauth', '--tls'], 'leave --tls out'],
  [['--auth', 'app'], 'expected user:password'],
])('%j is refused', (args, message) => expect(runCommand(args).done).rejects.toThrow(message))

test('an address that looks like a mistyped fault is reported once', async () => {
  const sink = await startCommand()
  for (const to of ['grylist+5s@x.example', '650@x.example', 'grylist+5s@x.example', 'ann@x.example']) {
    expect(await sink.send({}, to)).toMatch(/^250/)
  }
  sink.stop()
  await sink.done
  expect(sink.events().filter(({ event }) => event === 'mistyped')).toMatchObject([
    { recipient: 'grylist+5s@x.example', word: 'grylist', meant: 'greylist' },
    { recipient: '650@x.example', word: '650', meant: null },
  ])
})

test('the command refuses a script with mistakes, with file and line, and a port that is taken', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'deferd-sink-')), 'bad.toml')
  writeFileSync(file, '[rule.x]\nat = "rcpt"\nrepply = "450 no"\n')
  await expect(runCommand(['--script', file]).done).rejects.toMatchObject({
    exitCode: 78,
    message: 'bad.toml:3: rule x: unknown key repply; did you mean reply?',
  })
  const { sink, ports } = await openSink(null)
  await expect(runCommand(['--listen', `127.0.0.1:${ports[0]?.port}`]).done).rejects.toMatchObject({ exitCode: 69 })
  await expect(runCommand(['--listen', 'nonsense']).done).rejects.toThrow('expected an address and a port')
  await expect(runCommand(['--script', '/nowhere.toml']).done).rejects.toMatchObject({ exitCode: 65 })
  await sink.close()
})

test('with --oauth, the command prints a configuration whose token the ports require, and no secret', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-sink-'))
  const script = join(folder, 'faults.toml')
  writeFileSync(script, '[authority.once]\nfails = "unavailable"\nfirst = 1\n')
  const args = ['--oauth', '--listen', '127.0.0.1:0', '--oauth-listen', '127.0.0.1:0', '--keep', folder, '--script', script]
  const { printed, stop, done } = runCommand(args)
  await expect.poll(() => printed.stderr, { timeout: 10_000 }).toContain('[oauth.sink]')
  const value = (name: string): string => new RegExp(`^${name} = "(.*)"$`, 'm').exec(printed.stderr)?.[1] ?? ''
  const ca = readFileSync(value('ca_file'), 'utf8')
  const secret = readFileSync(value('client_secret_file'), 'utf8').trim()
  expect(statSync(value('client_secret_file')).mode & 0o777).toBe(0o600)
  expect(readFileSync(value('smtp_sasl_password_maps'), 'utf8')).toBe(`${value('relayhost')} app@contoso.example:\n`)
  const form = {
    grant_type: 'client_credentials',
    client_id: value('client_id'),
    client_secret: secret,
    scope: 'https://outlook.office365.com/.default',
  }
  const ask = () => askAuthority({ net: systemNet, clock: realClock }, ca)(value('token_url'), new URLSearchParams(form))
  expect(await ask()).toEqual({ kind: 'reply', status: 503, body: '{"error":"temporarily_unavailable"}' })
  const reply = await ask()
  const { access_token: accessToken } = JSON.parse(reply.kind === 'reply' ? reply.body : '{}') as { readonly access_token: string }
  const port = Number(value('relayhost').split(':').at(-1))
  const send = async (auth: object | undefined) => {
    const transport = createTransport({ host: '127.0.0.1', port, requireTLS: true, tls: { ca }, ...(auth === undefined ? {} : { auth }) })
    try {
      return (await transport.sendMail({ from: 'app@contoso.example', to: 'ann@far.example', text: 'hi' })).response
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    } finally {
      transport.close()
    }
  }
  expect(await send({ type: 'OAuth2', user: 'app@contoso.example', accessToken })).toMatch(/^250/)
  expect(await send(undefined)).toMatch(/530 5\.7\.57/)
  stop()
  await done
  const events = printed.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(events.filter(({ event }) => event === 'authority')).toMatchObject([
    { status: 503, error: 'temporarily_unavailable', rule: 'once' },
    { status: 200, grant: 'client_credentials', oauth_client: 'deferd-sink' },
  ])
  for (const text of [secret, accessToken]) expect(`${printed.stdout}${printed.stderr}`).not.toContain(text)
  // The next sink has the same certificate and the same secret.
  const again = runCommand(args)
  await expect.poll(() => again.printed.stderr, { timeout: 10_000 }).toContain('[oauth.sink]')
  expect([readFileSync(value('ca_file'), 'utf8'), readFileSync(value('client_secret_file'), 'utf8').trim()]).toEqual([ca, secret])
  again.stop()
  await again.done
})

test('with --oauth google, the configuration has a service account, and no device login, which Google does not have for mail', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-sink-'))
  const { printed, stop, done } = runCommand([
    '--oauth',
    'google',
    '--listen',
    '127.0.0.1:0',
    '--oauth-listen',
    '127.0.0.1:0',
    '--keep',
    folder,
  ])
  await expect.poll(() => printed.stderr, { timeout: 10_000 }).toContain('ca_file = ')
  expect(printed.stderr).toContain(`service_account_file = "${join(folder, 'service-account.json')}"`)
  expect(printed.stderr).not.toContain('device')
  stop()
  await done
})
