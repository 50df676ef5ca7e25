/** Limits of the queue at real daemons: clients that send together, kills, and several nodes. */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, describe, expect, test } from 'vitest'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { RemoteLedger } from '../support/remote-ledger.ts'
import { SmtpLoad } from '../support/smtp-load.ts'
import { DaemonFolder, type StartedProcess } from '../support/started-daemon.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

const FULL = '452 4.3.1 Error: queue is full, try again later'
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

async function started(folder: DaemonFolder, settings: Readonly<Record<string, string>>): Promise<StartedProcess> {
  const process = folder.run(['start'], { smtpd_client_connection_count_limit: '0', ...settings })
  await process.prints('queue directory')
  return process
}

interface Usage {
  readonly share: string
  readonly messages: number
  readonly bytes: number
}

/** The counts of shares, and those of a scan, of a queue without a daemon. */
function countsIn(folder: DaemonFolder): { readonly counted: readonly Usage[]; readonly scanned: readonly Usage[] } {
  const db = new Database(join(folder.path, 'queue', 'queue.db'))
  const all = (sql: string) => db.prepare<[], Usage>(sql).all()
  const counted = all('select share, messages, bytes from share_usage order by share')
  const scanned = all(`
    select coalesce(share, '') as share, count(*) as messages, sum(size) as bytes from message
    where placement in ('queued', 'hold') group by 1 order by 1`)
  db.close()
  return { counted, scanned }
}

test('50 clients with 1 MB each stay below 10 MB together', { timeout: 240_000 }, async () => {
  const folder = new DaemonFolder()
  closers.push(() => folder.close())
  const port = await portBelowEphemeral()
  const daemon = await started(folder, { smtpd_listen: `127.0.0.1:${port}`, queue_size_limit: '10000000' })
  const load = new SmtpLoad()
  closers.push(() => load.close())
  load.contentBytes = 1_000_000
  load.port = port
  load.start(50, () => 'ann@far.example')
  await until('full', 120_000, () => load.refusals.length >= 100)
  load.port = null
  daemon.child.kill('SIGTERM')
  await daemon.ended
  const { counted, scanned } = countsIn(folder)
  expect(counted).toEqual(scanned)
  // The end of the daemon ends the sessions.
  expect(load.refusals.filter((reply) => reply !== FULL && !reply.startsWith('421 '))).toEqual([])
  const bytes = scanned.reduce((sum, one) => sum + one.bytes, 0)
  expect(bytes).toBeLessThanOrEqual(10_000_000)
  expect(load.acknowledged.size).toBe(9)
})

test('after each of 20 kills under load the counts equal a scan', { timeout: 600_000 }, async () => {
  const folder = new DaemonFolder()
  const far = new RemoteLedger()
  closers.push(
    () => far.close(),
    () => folder.close(),
  )
  const settings = {
    smtpd_listen: `127.0.0.1:${await portBelowEphemeral()}`,
    relayhost: `[127.0.0.1]:${await far.listen()}`,
    queue_message_limit: '5000',
    queue_share_size_limit: '50M',
  }
  const load = new SmtpLoad()
  closers.push(() => load.close())
  load.pace = 2
  load.start(10, (number) => (number % 3 === 0 ? `busy-${number}@far.example` : `user-${number}@far.example`))
  const ledger: number[] = []
  for (let kill = 0; kill < 20; kill++) {
    const daemon = await started(folder, settings)
    load.port = Number(settings.smtpd_listen.split(':')[1])
    await pause(100 + 37 * kill)
    daemon.child.kill('SIGKILL')
    await daemon.ended
    load.port = null
    const { counted, scanned } = countsIn(folder)
    expect(counted).toEqual(scanned)
    ledger.push(scanned.reduce((sum, { messages }) => sum + messages, 0))
  }
  expect(load.acknowledged.size).toBeGreaterThan(100)
  expect(Math.max(...ledger)).toBeGreaterThan(10)
})

const reason = reasonWithoutPostgres()
describe.skipIf(reason !== null)(`several nodes${reason === null ? '' : ` (skipped: ${reason})`}`, { timeout: 240_000 }, () => {
  test('two nodes exceed a limit by what one accepts in a second at most; a killed one leaves the sums exact', async () => {
    const limit = 300
    const cluster = await NodeCluster.open({ queue_message_limit: String(limit), smtpd_client_connection_count_limit: '0' })
    closers.push(() => cluster.close())
    for (const one of cluster.far) one.isBusy = true
    const nodes = await cluster.startAll('n1', 'n2')
    for (const { load } of nodes) {
      load.pace = 5
      load.start(4, (number) => `user-${number}@d${number % 6}.example`)
    }
    await until('both full', 120_000, () => nodes.every(({ load }) => load.refusals.includes(FULL)))
    await pause(3_000)
    for (const { load } of nodes) load.pace = null
    const perSecond = nodes.map(({ load }) => {
      const times = [...load.acknowledgedAt.values()]
      return Math.max(0, ...times.map((at) => times.filter((other) => other >= at && other < at + 1_500).length))
    })
    const scanned = async () => {
      const [row] = await cluster.server.query(
        `select count(*)::int as messages, coalesce(sum(size), 0)::int as bytes from message where placement in ('queued', 'hold')`,
      )
      return row
    }
    const counted = async () => {
      const [row] = await cluster.server.query(
        `select coalesce(sum(messages), 0)::int as messages, coalesce(sum(bytes), 0)::int as bytes from share_usage`,
      )
      return row
    }
    const messages = Number((await scanned())?.['messages'])
    expect(messages).toBeGreaterThanOrEqual(limit * 0.95)
    expect(messages).toBeLessThanOrEqual(limit + Math.max(...perSecond))
    expect(await counted()).toEqual(await scanned())
    nodes[0]?.process.child.kill('SIGKILL')
    await until('taken over', 60_000, async () => (await cluster.server.query('select 1 from node')).length === 1)
    expect(await counted()).toEqual(await scanned())
    for (const one of cluster.far) one.isBusy = false
  })
})
