/** A real daemon of which one thread does not answer: event loop, reader or writer of the store; or whose disk or database hangs. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect as anywhere, test, type ExpectStatic } from 'vitest'
import { delayedSyncs, noFaultsBecause } from '../support/io-faults/io-faults.ts'
import { reasonWithoutPostgres, startPostgres } from '../support/postgres-server.ts'
import { repliesOf } from '../support/smtp-load.ts'
import { DaemonFolder, type StartedProcess } from '../support/started-daemon.ts'
import { INSPECTED, stall } from '../support/thread-stall.ts'

/** Stories run at once, since most of their time is waiting. */
const story = (name: string, run: (folder: DaemonFolder, expect: ExpectStatic) => Promise<void>, without: string | null = null): void =>
  test(name + (without === null ? '' : ` (skipped: ${without})`), { concurrent: true, skip: without !== null }, async ({ expect }) => {
    const folder = new DaemonFolder()
    try {
      await run(folder, expect)
    } finally {
      await folder.close()
    }
  })

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))
const PATIENT = { timeout: 60_000, interval: 100 }
/** Longer than any test. */
const FOR_EVER = 600_000
/** Twice the time in which a stop ends, for a loaded machine. */
const STOP_LIMIT = 20_000

/** Sends a message to a port, and returns its queue id. */
async function acceptedBy(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const reply = repliesOf(socket)
  let last = await reply()
  for (const line of ['EHLO me', 'MAIL FROM:<a@us.example>', 'RCPT TO:<b@far.example>', 'DATA', 'Subject: x\r\n\r\nx\r\n.']) {
    socket.write(`${line}\r\n`)
    last = await reply()
  }
  socket.destroy()
  return /queued as (\w+)/.exec(last ?? '')?.[1] ?? `none: ${last}`
}

const portOf = ({ out }: StartedProcess): number => Number(/listens on 127\.0\.0\.1:(\d+)/.exec(out)?.[1])

interface Watched {
  readonly daemon: StartedProcess
  readonly health: () => Promise<Readonly<Record<string, unknown>>>
  readonly metrics: () => Promise<string>
}

interface Start {
  readonly env?: Readonly<Record<string, string>>
  readonly settings?: Readonly<Record<string, string>>
}

async function started(folder: DaemonFolder, { env = {}, settings = {} }: Start = {}): Promise<Watched> {
  const daemon = folder.run(['start'], { http_listen: '127.0.0.1:0', ...settings }, { env: { ...process.env, ...INSPECTED, ...env } })
  await daemon.prints('daemon started')
  const base = /metrics: (http:\S+)\/metrics/.exec(daemon.out)?.[1] ?? ''
  return {
    daemon,
    health: async () => {
      const response = await fetch(`${base}/healthz`)
      return { code: response.status, ...((await response.json()) as object) }
    },
    metrics: async () => (await fetch(`${base}/metrics`)).text(),
  }
}

/** End of a daemon one of whose threads cannot be ended within about a second, as also on a machine that is very busy. */
const KILLED_ITSELF = 'killed itself'

async function terminated({ daemon }: Watched) {
  const begun = performance.now()
  daemon.child.kill('SIGTERM')
  const { code, err } = await daemon.ended
  const isOwnKill = daemon.child.signalCode === 'SIGKILL' && err.includes('so that the process ends itself by SIGKILL\n')
  return { code: isOwnKill ? KILLED_ITSELF : code, err, took: performance.now() - begun }
}

const SILENT = anywhere.stringMatching(/ of the store has not answered for \d\d s$/)

story(
  'a reader that does not answer is reported until it answers again, and does not keep the daemon from ending',
  async (folder, expect) => {
    const watched = await started(folder)
    const { daemon, health, metrics } = watched
    await stall(daemon, 'reader-worker', 20_000)
    // A scrape asks the reader.
    expect(await metrics()).toContain('\ndeferd_store_silence_seconds{side="reader"} 0\n')
    await expect.poll(health, PATIENT).toMatchObject({ code: 503, healthy: false, reader: SILENT, writer: 'ok', store: 'ok' })
    expect(await metrics()).toMatch(/\ndeferd_store_silence_seconds\{side="reader"\} 1\d\n/)
    await expect.poll(health, PATIENT).toMatchObject({ code: 200, reader: 'ok' })
    expect(daemon.err.match(/the reader of the store has not answered for 10 s|the reader of the store answers again/g)).toHaveLength(2)

    await stall(daemon, 'reader-worker', FOR_EVER)
    await metrics()
    const { code, err, took } = await terminated(watched)
    expect([70, KILLED_ITSELF]).toContain(code)
    expect(took).toBeLessThan(STOP_LIMIT)
    expect(err).toMatch(/the reader of the store has not answered for \d+ s: it is ended, since the daemon stops\n/)
    expect(err).not.toContain(': stopped')
  },
)

story('a writer that does not answer is reported, and no acknowledged message is lost when the daemon ends', async (folder, expect) => {
  const watched = await started(folder)
  const { daemon, health } = watched
  const queueId = await acceptedBy(portOf(daemon))
  await stall(daemon, 'worker-main', FOR_EVER)
  await expect.poll(health, PATIENT).toMatchObject({ code: 503, writer: SILENT, store: SILENT, reader: 'ok' })
  const { code, err, took } = await terminated(watched)
  expect([70, KILLED_ITSELF]).toContain(code)
  expect(took).toBeLessThan(STOP_LIMIT)
  expect(err).toMatch(/the writer of the store has not answered for \d+ s: it is ended, since the daemon stops; mail in transfer/)
  expect((await folder.run(['queue', 'list']).ended).out).toContain(queueId)
})

story('the watchdog of systemd hears from the event loop, and not while it stands still', async (folder, expect) => {
  const heard = join(folder.path, 'heard')
  const notify = join(folder.path, 'systemd-notify')
  writeFileSync(notify, `#!/bin/sh\necho "$2" >> ${heard}\n`)
  chmodSync(notify, 0o755)
  const watched = await started(folder, {
    env: { NOTIFY_SOCKET: join(folder.path, 'socket'), WATCHDOG_USEC: '400000', PATH: `${folder.path}:${process.env['PATH']}` },
  })
  const pings = () => (existsSync(heard) ? readFileSync(heard, 'utf8').split('WATCHDOG=1').length - 1 : 0)
  await expect.poll(pings, PATIENT).toBeGreaterThan(2)
  await stall(watched.daemon, 'main', 20_000)
  // Notifications that are under way.
  await pause(8_000)
  const before = pings()
  await pause(8_000)
  expect(pings()).toBe(before)
  await expect.poll(pings, PATIENT).toBeGreaterThan(before)
  expect((await terminated(watched)).code).toBe(0)
})

story(
  'a disk that hangs: the daemon ends itself, and no acknowledged message is lost',
  async (folder, expect) => {
    const hanging = join(folder.path, 'hanging')
    const watched = await started(folder, { env: delayedSyncs(FOR_EVER, { during: hanging }) })
    const { daemon, health } = watched
    const queueId = await acceptedBy(portOf(daemon))
    writeFileSync(hanging, '')
    acceptedBy(portOf(daemon)).catch(() => undefined)
    await expect.poll(health, PATIENT).toMatchObject({ code: 503, writer: SILENT })
    const { code, err, took } = await terminated(watched)
    expect(code).toBe(KILLED_ITSELF)
    expect(took).toBeLessThan(STOP_LIMIT)
    expect(err).toMatch(
      /the writer of the store did not answer.*; a system call does not return, so that the process ends itself by SIGKILL\n/,
    )
    expect((await folder.run(['queue', 'list']).ended).out).toContain(queueId)
  },
  noFaultsBecause(),
)

story(
  'a database that hangs is reported, and does not keep the daemon from ending',
  async (folder, expect) => {
    const server = await startPostgres()
    try {
      const settings = { queue_database: server.url(), queue_database_durability: 'primary' }
      const watched = await started(folder, { settings })
      await expect.poll(watched.health, PATIENT).toMatchObject({ code: 200, node: 'ok' })
      server.freeze()
      await expect.poll(watched.health, PATIENT).toMatchObject({ code: 503, reader: SILENT, writer: SILENT })
      const { code, err, took } = await terminated(watched)
      expect(code).toBe(70)
      expect(took).toBeLessThan(STOP_LIMIT)
      expect(err).toMatch(/the writer of the store has not answered for \d+ s: it is ended, since the daemon stops/)
    } finally {
      await server.remove()
    }
  },
  reasonWithoutPostgres(),
)
