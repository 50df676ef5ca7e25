import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { VERSION } from '../../src/system/version.ts'
import { mail } from '../conformance/mail.ts'
import { portBelowEphemeral } from '../support/ports.ts'

const DEFERD = join(import.meta.dirname, '../../bin/deferd.js')

let folder: string
let env: NodeJS.ProcessEnv
const children: ChildProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'deferd-process-'))
  env = { ...process.env, DEFERD_QUEUE_DIRECTORY: join(folder, 'queue') }
})
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const deferd = (argv: readonly string[], input = '') =>
  spawnSync(process.execPath, [DEFERD, ...argv], { env, cwd: folder, input, encoding: 'utf8' })

interface Running {
  readonly child: ChildProcess
  readonly said: readonly string[]
  readonly log: readonly string[]
  readonly ended: Promise<number | null>
}

/** Starts the daemon; resolves when it has printed its addresses. */
async function start(...argv: readonly string[]): Promise<Running> {
  const child = spawn(process.execPath, [DEFERD, 'start', ...argv], { env, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  const said: string[] = []
  const log: string[] = []
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line))
  await new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      said.push(line)
      if (line.includes('queue directory')) resolve()
    })
    child.once('exit', () => resolve())
  })
  return { child, said, log, ended }
}

const until = (what: () => boolean): Promise<void> => expect.poll(what).toBe(true)

test('the relay starts with one command, accepts a message, shows it, and exits with 0 on SIGTERM', async () => {
  const port = await portBelowEphemeral()
  env['DEFERD_SMTPD_LISTEN'] = `127.0.0.1:${port}`
  env['DEFERD_RELAYHOST'] = '[127.0.0.1]:1'
  const daemon = await start()
  expect(daemon.said[0]).toBe(`deferd listens on 127.0.0.1:${port}`)

  expect(deferd(['sendmail', '-f', 'me@example.com', 'you@example.com'], 'Subject: hello\n\nIt works.\n')).toMatchObject({
    status: 0,
    stderr: '',
  })
  await until(() => deferd(['queue', 'list', '--tsv', '--queue', 'deferred']).stdout !== '')
  const [line = ''] = deferd(['queue', 'list', '--json']).stdout.split('\n')
  const { queue_id: id } = JSON.parse(line) as { queue_id: string }
  expect(JSON.parse(line)).toMatchObject({ queue_name: 'deferred', sender: 'me@example.com', attempts: 1 })
  expect(deferd(['queue', 'show', id]).stdout).toContain('Connection refused')
  expect(deferd(['queue', 'hold', id])).toMatchObject({ status: 0, stdout: '1 message put on hold\n' })
  await until(() => daemon.log.some((text) => text.includes(`${id}: placed on hold`)))

  const second = deferd(['start'])
  expect(second.status).toBe(75)
  expect(second.stderr).toMatch(/^deferd: the queue in .* is in use by process \d+ \(since \S+\)\n$/)

  daemon.child.kill('SIGHUP')
  await until(() => daemon.log.some((text) => text.includes('reload -- ')))
  daemon.child.kill('SIGTERM')
  expect(await daemon.ended).toBe(0)
  const ofMaster = daemon.log.flatMap(
    (logged) => /deferd\/master\[\d+\]: (daemon started.*|reload .*|terminating|stopped)$/.exec(logged)?.[1] ?? [],
  )
  const inEffect = `version ${VERSION}, configuration /dev/null`
  expect(ofMaster).toEqual([`daemon started -- ${inEffect}`, `reload -- ${inEffect}`, 'terminating', 'stopped'])
  expect(daemon.log.join('\n')).toMatch(new RegExp(`deferd/smtp\\[\\d+\\]: ${id}: to=<you@example.com>, relay=none, delay=`))
  expect(deferd(['mailq']).stdout).toContain(`${id}!`)
})

test('a port in use is reported in one sentence: 69', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const { status, stderr } = deferd(['start', '-o', `smtpd_listen=127.0.0.1:${port}`])
  server.close()
  expect(status).toBe(69)
  expect(stderr.trim().split('\n')).toEqual([
    expect.stringContaining('new queue created in '),
    expect.stringMatching(/^deferd: .*EADDRINUSE/),
  ])
})

test('a folder that cannot hold a queue is reported in one sentence: 78', () => {
  writeFileSync(join(folder, 'file'), '')
  const { status, stderr } = deferd(['start', '-o', `queue_directory=${join(folder, 'file')}`])
  expect(status).toBe(78)
  expect(stderr.trim().split('\n')).toHaveLength(1)
})

test('called under the names of Postfix’s commands, it is those commands', async () => {
  const { close } = await openQueue()
  await close()
  for (const name of ['mailq', 'postqueue', 'sendmail']) symlinkSync(DEFERD, join(folder, name))
  const call = (name: string, ...argv: readonly string[]) =>
    spawnSync(process.execPath, [join(folder, name), ...argv], { env, cwd: folder, encoding: 'utf8' })
  expect(call('mailq')).toMatchObject({ status: 0, stdout: 'Mail queue is empty\n' })
  expect(call('postqueue', '-j')).toMatchObject({ status: 0, stdout: '' })
  expect(call('sendmail', '-bp')).toMatchObject({ status: 0, stdout: 'Mail queue is empty\n' })
})

const openQueue = () => openStore(env['DEFERD_QUEUE_DIRECTORY'] ?? '', { threads: false, create: true })

test('an output that cannot be written is told in a sentence: 74', () => {
  const full = openSync('/dev/full', 'w')
  const run = (argv: readonly string[], stdio: ('ignore' | 'pipe' | number)[]) =>
    spawnSync(process.execPath, [DEFERD, ...argv], { env, cwd: folder, encoding: 'utf8', stdio })
  expect(run(['config'], ['ignore', full, 'pipe'])).toMatchObject({
    status: 74,
    stderr: 'deferd: cannot write the output: ENOSPC: no space left on device, write\n',
  })
  expect(run(['queue', 'nonsense'], ['ignore', 'pipe', full]).status).toBe(64)
  closeSync(full)
})

test('a relay whose output cannot be written runs on, with a warning, and ends with 0 at SIGTERM', async () => {
  const full = openSync('/dev/full', 'w')
  const argv = [DEFERD, 'start', '-o', `smtpd_listen=127.0.0.1:${await portBelowEphemeral()}`]
  const child = spawn(process.execPath, argv, { env, cwd: folder, stdio: ['ignore', full, 'pipe'] })
  closeSync(full)
  children.push(child)
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const log: string[] = []
  for await (const line of createInterface({ input: child.stderr as NodeJS.ReadableStream })) {
    log.push(line)
    if (line.includes('cannot write the output')) child.kill('SIGTERM')
  }
  expect(await ended).toBe(0)
  expect(log).toContain('deferd: warning: cannot write the output: ENOSPC: no space left on device, write')
  expect(log.at(-1)).toContain(': stopped')
})

test('| head ends a long listing without an error', async () => {
  const { store, close } = await openQueue()
  await Promise.all(Array.from({ length: 5_000 }, () => store.enqueue(mail(store))))
  await close()
  const shell = spawnSync('sh', ['-c', `{ "${process.execPath}" "${DEFERD}" queue list --json; echo "ended with $?" >&2; } | head -n 1`], {
    env,
    cwd: folder,
    encoding: 'utf8',
  })
  expect(shell.stdout.split('\n')).toHaveLength(2)
  expect(shell.stderr).toBe('ended with 0\n')
})
