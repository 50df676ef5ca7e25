import { randomInt } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DaemonFolder } from '../support/started-daemon.ts'

const HOLDER = join(import.meta.dirname, '../store/sqlite/holder.ts')
const NOBODY = 65_534
const isRoot = process.getuid?.() === 0

/** Tests run at once, since most of their time is waiting. */
const AT_ONCE = { concurrent: true }

/** Runs a test in a folder of its own. */
const inFolder = (run: (folder: DaemonFolder) => Promise<void>) => async (): Promise<void> => {
  const folder = new DaemonFolder()
  try {
    await run(folder)
  } finally {
    await folder.close()
  }
}

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** A command that owns the queue. */
async function held(folder: DaemonFolder) {
  const holder = folder.script(HOLDER, join(folder.path, 'queue'))
  while (!existsSync(join(folder.path, 'queue/owner'))) await pause(20)
  return holder
}

/** Waits until a process handles SIGHUP, the first bit of its mask of caught signals; 2 s on a system without /proc. */
async function handlesHangup(pid: number): Promise<void> {
  if (!existsSync('/proc/self/status')) return pause(2_000)
  await expect.poll(() => Number.parseInt(/SigCgt:\s+\w*(\w)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '', 16) & 1).toBe(1)
}

test(
  'a start waits for a command that owns the queue; signals meanwhile take effect when it is open',
  AT_ONCE,
  inFolder(async (folder) => {
    const holder = await held(folder)
    const daemon = folder.run(['start'])
    await handlesHangup(daemon.child.pid ?? 0)
    await pause(500)
    expect(daemon.child.exitCode).toBeNull()
    daemon.child.kill('SIGHUP')
    await pause(200)
    daemon.child.kill('SIGTERM')
    holder.child.kill('SIGKILL')
    const { code, out, err } = await daemon.ended
    expect({ code, err }).toMatchObject({ code: 0 })
    expect(out).toContain('deferd listens on')
    expect(err).not.toContain('    at ')
  }),
)

test(
  'a daemon limits its memory for new objects, once and in the same process, unless NODE_OPTIONS do',
  AT_ONCE,
  inFolder(async (folder) => {
    const daemon = folder.run(['start'])
    await daemon.prints('deferd listens on')
    const { pid } = daemon.child
    const [, ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    expect(args.filter((one) => one.startsWith('--'))).toContain('--max-semi-space-size=16')
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')).toContain('MALLOC_ARENA_MAX=2')
    daemon.child.kill('SIGTERM')
    expect(await daemon.ended).toMatchObject({ code: 0 })

    const chosen = folder.run(['start'], {}, { env: { ...process.env, NODE_OPTIONS: '--max-semi-space-size=32' } })
    await chosen.prints('deferd listens on')
    expect(readFileSync(`/proc/${chosen.child.pid}/cmdline`, 'utf8')).not.toContain('semi-space')
  }),
)

test(
  'a relay whose output nobody reads runs on, and ends with 0 at SIGTERM',
  AT_ONCE,
  inFolder(async (folder) => {
    const daemon = folder.run(['start'])
    daemon.child.stdout?.destroy()
    while (!existsSync(join(folder.path, 'queue/admin.sock'))) await pause(20)
    await pause(500)
    daemon.child.stderr?.destroy()
    expect(daemon.child.exitCode).toBeNull()
    daemon.child.kill('SIGTERM')
    expect((await daemon.ended).code).toBe(0)
  }),
)

test(
  'a start ends with 75 when the queue stays owned',
  AT_ONCE,
  inFolder(async (folder) => {
    const holder = await held(folder)
    const { code, err } = await folder.run(['start']).ended
    expect(code).toBe(75)
    expect(err).toContain(`is in use by process ${holder.child.pid}`)
  }),
)

test(
  'commands to a stopped daemon end with a sentence',
  AT_ONCE,
  inFolder(async (folder) => {
    const daemon = folder.run(['start'])
    await daemon.prints('queue directory')
    daemon.child.kill('SIGSTOP')
    const flush = folder.run(['queue', 'flush', '--all'])
    const list = folder.run(['destination', 'list'])
    const { code, err } = await flush.ended
    expect(code).toBe(75)
    expect(err).toMatch(/^deferd: the daemon has not answered for 5 seconds: [^\n]+\n$/)
    expect((await list.ended).code).toBe(0)
    daemon.child.kill('SIGCONT')
    daemon.child.kill('SIGTERM')
    expect((await daemon.ended).code).toBe(0)
  }),
)

test.runIf(isRoot)(
  'a stop with an unreadable folder ends in order',
  AT_ONCE,
  inFolder(async (folder) => {
    const queue = join(folder.path, 'queue')
    mkdirSync(queue, { mode: 0o700 })
    chownSync(queue, NOBODY, NOBODY)
    // The folder for temporary files of the tests is private.
    chmodSync(tmpdir(), 0o755)
    chmodSync(folder.path, 0o755)
    const daemon = folder.run(['start'], {}, { uid: NOBODY, gid: NOBODY })
    await daemon.prints('queue directory')
    chmodSync(queue, 0)
    daemon.child.kill('SIGTERM')
    const { code, err } = await daemon.ended
    expect({ code, err }).toMatchObject({ code: 0 })
    expect(err).not.toContain('    at ')
  }),
)

test.runIf(isRoot)(
  'with --user the daemon opens a privileged port, then works as the user with its groups alone',
  AT_ONCE,
  inFolder(async (folder) => {
    chmodSync(tmpdir(), 0o755)
    chmodSync(folder.path, 0o755)
    const passwords = join(folder.path, 'passwords')
    writeFileSync(passwords, '', { mode: 0o604 })
    const settings = {
      // No other run of the tests has the address.
      smtpd_listen: `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}:857`,
      smtp_sasl_password_maps: `texthash:${passwords}`,
      queue_directory: join(folder.path, 'new/queue'),
    }
    const daemon = folder.run(['start', '--user', 'nobody'], settings)
    await daemon.prints('queue directory')
    const status = readFileSync(`/proc/${daemon.child.pid}/status`, 'latin1')
    expect(status).toMatch(/^Uid:\s65534\s65534\s65534\s65534$/m)
    expect(status).toMatch(/^Gid:\s65534\s65534\s65534\s65534$/m)
    expect(status).toMatch(/^Groups:\s65534 ?$/m)
    for (const name of ['', 'queue.db', 'queue.db-wal', 'lock.db', 'admin.sock', 'local.token', 'maildrop']) {
      expect([name, statSync(join(settings.queue_directory, name)).uid]).toEqual([name, NOBODY])
    }
    expect(statSync(join(settings.queue_directory, 'local.token')).mode & 0o777).toBe(0o600)
    expect(await folder.run(['queue', 'hold', '--all'], settings).ended).toMatchObject({ code: 0, out: '0 messages put on hold\n' })
    daemon.child.kill('SIGTERM')
    const { code, err } = await daemon.ended
    expect({ code, err }).toMatchObject({ code: 0 })
    expect(err).toContain(`warning: ${passwords} is readable by every local user`)
    expect(err).not.toContain('running as root')
    // As root the folder of the user is refused.
    const asRoot = await folder.run(['start'], settings).ended
    expect(asRoot).toMatchObject({ code: 78, err: expect.stringContaining('it belongs to the user with id 65534') as string })
  }),
)

test.runIf(isRoot)(
  'root is warned of, and unknown users are refused',
  AT_ONCE,
  inFolder(async (folder) => {
    const daemon = folder.run(['start'])
    await daemon.prints('warning: running as root')
    await daemon.prints('queue directory')
    daemon.child.kill('SIGTERM')
    expect((await daemon.ended).code).toBe(0)
    expect(await folder.run(['start', '--user', 'no-such-user']).ended).toMatchObject({
      code: 78,
      err: expect.stringContaining('there is no such user') as string,
    })
  }),
)
