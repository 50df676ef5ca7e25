/**
 * Nodes that are killed between the commit of an outcome and that of its notice. A trigger holds the notice back while the test kills
 * the node. Half of the notices are committed nevertheless, since the database goes on with what it has received.
 */
import { createTransport } from 'nodemailer'
import { seededRandom } from '../../../src/system/random.ts'
import { NodeCluster, until } from '../node-cluster.ts'
import { hidingTriggers } from './hidden-triggers.ts'

const HELD = 16
const HOLD_NOTICES = `
create function hold_notice() returns trigger language plpgsql as $$
begin
  perform pg_advisory_lock_shared(${HELD});
  perform pg_advisory_unlock_shared(${HELD});
  return new;
end $$;
create trigger hold_notice before insert on message for each row when (new.sender = '') execute function hold_notice();
${hidingTriggers('hold_notice')}`

const WAITING = `
select pid, (select name from node where id = substring(application_name from '^deferd (\\d+) w$')::bigint) as name
from pg_stat_activity where wait_event = 'advisory' and application_name like 'deferd % w'`

export interface KilledAtNotice {
  /** Number of kills whose notice was never committed. */
  readonly uncommitted: number
  /** Number of notices by refused recipient. */
  readonly notices: readonly number[]
  readonly repeatedNotices: number
}

/** Returns false for 451, the reply of a node that has not reached the database yet. Rethrows any other error. */
function isUnavailable(error: unknown): false {
  if (error instanceof Error && 'responseCode' in error && error.responseCode === 451) return false
  throw error
}

/** Kills the node that sends the notice of a message, so many times. */
export async function killedAtNotice(kills: number, seed: number): Promise<KilledAtNotice> {
  const chance = seededRandom(seed).stream('kills')
  const cluster = await NodeCluster.open({ node_lease: '2s' })
  try {
    const nodes = await cluster.startAll('n1', 'n2')
    await cluster.shared('n1', 'n2')
    await cluster.server.query(HOLD_NOTICES)
    let uncommitted = 0
    for (let n = 1; n <= kills; n++) {
      const holder = await cluster.server.session()
      await holder.query(`select pg_advisory_lock(${HELD})`)
      const port = nodes[n % nodes.length]?.port ?? 0
      const transport = createTransport({ host: '127.0.0.1', port, ignoreTLS: true })
      const mail = { from: 'app@us.example', to: `refuse-${n}@d${n % 6}.example` }
      await until('submitted', 30_000, () => transport.sendMail(mail).then(() => true, isUnavailable))
      let waiting: Record<string, unknown> | undefined
      await until('held', 30_000, async () => (waiting = (await cluster.server.query(WAITING))[0]) !== undefined)
      const node = cluster.nodes.get(String(waiting?.['name']))
      if (node === undefined) throw new Error(`no node is called ${String(waiting?.['name'])}`)
      node.process.child.kill('SIGKILL')
      await node.process.ended
      if (chance() < 0.5) {
        uncommitted++
        await cluster.server.query(`select pg_terminate_backend(${Number(waiting?.['pid'])}, 2000)`)
      }
      await holder.end()
      await cluster.restart(node)
      await until(`noticed after kill ${n}`, 60_000, () => cluster.home.noticed.has(n))
    }
    await until('empty', 60_000, async () => (await cluster.says('queue', 'list', '--count')).trim() === '0')
    const { noticedAbout, repeatedNotices } = cluster.home
    return { uncommitted, notices: [...noticedAbout.values()].map(({ size }) => size), repeatedNotices }
  } finally {
    await cluster.close()
  }
}
