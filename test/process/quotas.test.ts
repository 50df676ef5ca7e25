/** Quotas at real daemons: kills, and several nodes. */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, describe, expect, test } from 'vitest'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { SmtpLoad } from '../support/smtp-load.ts'
import { DaemonFolder } from '../support/started-daemon.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

const MUCH = '450 4.7.1 Error: too much mail from app@us.example'
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Messages that are charged, and those in the queue, without a daemon. */
function countsIn(folder: DaemonFolder): { readonly charged: number; readonly queued: number } {
  const db = new Database(join(folder.path, 'queue', 'queue.db'))
  const count = (sql: string): number => db.prepare<[], number>(sql).pluck().get() ?? 0
  const counts = { charged: count('select coalesce(sum(messages), 0) from quota_count'), queued: count('select count(*) from message') }
  db.close()
  return counts
}

test('after each of 6 kills under load as much is charged as is queued, and the limit holds', { timeout: 600_000 }, async () => {
  const folder = new DaemonFolder()
  closers.push(() => folder.close())
  const port = await portBelowEphemeral()
  const settings = {
    smtpd_listen: `127.0.0.1:${port}`,
    smtpd_sender_hourly_message_limit: '300',
    smtpd_client_connection_count_limit: '0',
    // Nothing listens there, so that all mail stays.
    relayhost: `[127.0.0.1]:${await portBelowEphemeral()}`,
  }
  const load = new SmtpLoad()
  closers.push(() => load.close())
  load.pace = 20
  load.start(10, (number) => `user-${number}@far.example`)
  for (let kill = 0; kill < 6; kill++) {
    const daemon = folder.run(['start'], settings)
    await daemon.prints('queue directory')
    load.port = port
    if (kill < 5) await pause(100 + 37 * kill)
    else await until('refusals', 120_000, () => load.refusals.filter((reply) => reply === MUCH).length >= 20)
    daemon.child.kill('SIGKILL')
    await daemon.ended
    load.port = null
    const { charged, queued } = countsIn(folder)
    expect(charged).toBe(queued)
    expect(queued).toBeLessThanOrEqual(300)
  }
  expect(load.acknowledged.size).toBeGreaterThan(200)
})

const reason = reasonWithoutPostgres()
describe.skipIf(reason !== null)(`several nodes${reason === null ? '' : ` (skipped: ${reason})`}`, { timeout: 240_000 }, () => {
  test('two nodes exceed a limit by what one accepts meanwhile, and a later one knows it', async () => {
    const limit = 200
    const quota = `[quota.app]\nkeys = "sender"\nlimits = ["${limit}/1d"]\n`
    const cluster = await NodeCluster.open({ smtpd_client_connection_count_limit: '0' }, {}, 2, quota)
    closers.push(() => cluster.close())
    const nodes = await cluster.startAll('n1', 'n2')
    for (const { load } of nodes) {
      load.pace = 20
      load.start(4, (number) => `user-${number}@d${number % 2}.example`)
    }
    await until('both refuse', 120_000, () => nodes.every(({ load }) => load.refusals.includes(MUCH)))
    await pause(3_000)
    for (const { load } of nodes) load.pace = null
    const meanwhile = nodes.map(({ load }) => {
      const times = [...load.acknowledgedAt.values()]
      return Math.max(0, ...times.map((at) => times.filter((other) => other >= at && other < at + 10_000).length))
    })
    const charged = async () => Number((await cluster.server.query('select sum(messages)::int as sum from quota_count'))[0]?.['sum'])
    const accepted = nodes.reduce((sum, { load }) => sum + load.acknowledged.size, 0)
    expect(await charged()).toBe(accepted)
    expect(accepted).toBeGreaterThanOrEqual(limit)
    expect(accepted).toBeLessThanOrEqual(limit + Math.max(...meanwhile))
    const third = await cluster.start('n3')
    third.load.start(1, () => 'ann@d0.example')
    await until('the third refuses', 60_000, () => third.load.refusals.includes(MUCH))
    expect(third.load.acknowledged.size).toBe(0)
  })
})
