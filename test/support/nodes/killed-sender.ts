/** Three nodes under load, with slow transactions, whose node that sends the webhook is killed. */
import { openPostgresReader } from '../../../src/store/postgres/open-reader.ts'
import { subscriptionShard } from '../../../src/store/membership/shards.ts'
import { NodeCluster, until } from '../node-cluster.ts'
import { urlOf } from '../postgres-queue.ts'
import { webhookAccount, type WebhookAccount } from '../webhook-account.ts'
import { WebhookLedger } from '../webhook-ledger.ts'
import { hidingTriggers } from './hidden-triggers.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** One of thirty transactions with events takes up to 600 ms more, while others commit. */
const SLOW_EVENTS = `
create function slow_event() returns trigger language plpgsql as $$
begin
  if random() < 0.033 then perform pg_sleep(0.6 * random()); end if;
  return null;
end $$;
create trigger slow_event after insert on event for each statement execute function slow_event();
${hidingTriggers('slow_event')}`

const recipientsOf = (number: number): string =>
  `${number % 6 === 0 ? 'refuse' : number % 11 === 0 ? 'defer' : 'user'}-${number}@d${number % 6}.example`

export interface KilledSender extends WebhookAccount {
  readonly kills: number
  readonly acknowledged: number
  /** Longest time between a kill and the next event, in s. */
  readonly longestGap: number
}

export async function killedSender({ kills, interval }: { readonly kills: number; readonly interval: number }): Promise<KilledSender> {
  const cluster = await NodeCluster.open({ node_lease: '2s', minimal_backoff_time: '2s' })
  const ledger = new WebhookLedger()
  try {
    const nodes = await cluster.startAll('n1', 'n2', 'n3')
    await cluster.shared('n1', 'n2', 'n3')
    ledger.trust((await cluster.says('webhook', 'add', 'app', `http://127.0.0.1:${await ledger.listen()}/`, '--allow-private')).trim())
    // A node writes the events of a new subscription from its next look on.
    await pause(2_500)
    await cluster.server.query(SLOW_EVENTS)
    for (const { load } of nodes) {
      load.pace = 60
      load.start(2, recipientsOf)
    }
    const gaps: number[] = []
    for (let kill = 0; kill < kills; kill++) {
      await pause(interval)
      gaps.push(await killedOnce(cluster, ledger))
    }
    await pause(interval)
    for (const { load } of nodes) await load.close()
    await until('empty', 120_000, async () => (await cluster.says('queue', 'list', '--count')).trim() === '0')
    await until(
      'caught up',
      60_000,
      async () => (JSON.parse(await cluster.says('webhook', 'list', '--json')) as { behind: number }).behind === 0,
    )
    const reader = await openPostgresReader({ url: urlOf(cluster.server.url()), durability: 'primary' })
    try {
      const acknowledged = nodes.reduce((sum, { load }) => sum + load.acknowledged.size, 0)
      return { ...(await webhookAccount(ledger, reader)), kills, acknowledged, longestGap: Math.max(...gaps) }
    } finally {
      await reader.close()
    }
  } finally {
    await ledger.close()
    await cluster.close()
  }
}

/** Kills the node that sends, waits until another one has sent an event, and starts the node again. Returns the time in between. */
async function killedOnce(cluster: NodeCluster, ledger: WebhookLedger): Promise<number> {
  const shard = subscriptionShard('app')
  const owner = async (): Promise<string | undefined> => {
    const [row] = await cluster.server.query(`select n.name from shard s join node n on n.id = s.owner where s.id = ${shard}`)
    return row === undefined ? undefined : String(row['name'])
  }
  let name: string | undefined
  await until('sent by a node', 30_000, async () => (name = await owner()) !== undefined)
  const node = cluster.nodes.get(name ?? '')
  if (node === undefined) throw new Error(`no node is called ${name}`)
  node.process.child.kill('SIGKILL')
  await node.process.ended
  const [killed, before] = [performance.now(), ledger.taken.size]
  await until('sent by another node', 40_000, () => ledger.taken.size > before)
  const gap = Math.round((performance.now() - killed) / 100) / 10
  await cluster.restart(node)
  return gap
}
