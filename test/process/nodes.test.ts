/** Several daemons on one queue in PostgreSQL: kills, stops, drains, and commands from any machine, with real processes. */
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { account } from '../support/nodes/account.ts'
import { until, NodeCluster, type ClusterNode } from '../support/node-cluster.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { repliesOf } from '../support/smtp-load.ts'

const reason = reasonWithoutPostgres()

const DESTINATIONS = 6
const recipientOf = (number: number): string => `user@d${number % DESTINATIONS}.example`
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Runs a story on a cluster of its own. The stories run at once, since most of their time is waiting. */
const story =
  (run: (cluster: NodeCluster) => Promise<void>, lease = '10s') =>
  async (): Promise<void> => {
    const cluster = await NodeCluster.open({ default_destination_concurrency_limit: '2', node_lease: lease })
    for (const far of cluster.far) far.delay = 40
    try {
      await run(cluster)
    } finally {
      await cluster.close()
    }
  }

/** Submits through each node until its client is closed. */
function submit(nodes: readonly ClusterNode[]): void {
  for (const { load } of nodes) {
    load.pace = 100
    load.start(2, recipientOf)
  }
}

/** Waits for all acknowledged mail, and returns how many deliveries were repeated. */
async function repeatedIn(cluster: NodeCluster, nodes: readonly ClusterNode[]): Promise<number> {
  const { acknowledged, repeated } = await account(cluster, nodes)
  expect(acknowledged).toBeGreaterThan(20)
  return repeated
}

describe.skipIf(reason !== null)(
  `nodes on PostgreSQL${reason === null ? '' : ` (skipped: ${reason})`}`,
  { timeout: 300_000, concurrent: true },
  () => {
    test(
      'a node is killed, another one stopped for a while: no mail is lost, and the limits hold for all nodes together',
      story(async (cluster) => {
        const nodes = await cluster.startAll('n1', 'n2', 'n3')
        const [killed, frozen, third] = nodes
        if (killed === undefined || frozen === undefined || third === undefined) throw new Error('three nodes were started')
        await cluster.shared('n1', 'n2', 'n3')
        submit(nodes)
        await pause(1_000)
        expect(Math.max(...cluster.far.map(({ mostInTransfer }) => mostInTransfer))).toBeLessThanOrEqual(2)

        killed.process.child.kill('SIGKILL')
        killed.load.port = third.port
        await cluster.shared('n2', 'n3')
        expect(third.process.err + frozen.process.err).toContain('node n1 (')

        frozen.process.child.kill('SIGSTOP')
        frozen.load.port = third.port
        await cluster.shared('n3')
        frozen.process.child.kill('SIGCONT')
        await frozen.process.prints('was taken over by another one')
        await cluster.shared('n2', 'n3')
        expect((await cluster.list()).map(({ name, state }) => ({ name, state }))).toEqual([
          { name: 'n1', state: 'lost' },
          { name: 'n2', state: 'active' },
          { name: 'n3', state: 'active' },
        ])

        // Two faults, with at most two deliveries in flight, or received and not recorded yet, at each destination.
        expect(await repeatedIn(cluster, nodes)).toBeLessThanOrEqual(2 * 2 * DESTINATIONS)
        expect(Math.max(...cluster.far.map(({ mostInTransfer }) => mostInTransfer))).toBeLessThanOrEqual(4)
        expect(frozen.process.err).not.toContain('panic')
      }, '3s'),
    )

    test(
      'a node that ends in order leaves at once, and a drained one refuses mail and gives its shards away',
      story(async (cluster) => {
        const nodes = await cluster.startAll('n1', 'n2')
        const [first, second] = nodes
        if (first === undefined || second === undefined) throw new Error('two nodes were started')
        await cluster.shared('n1', 'n2')
        submit(nodes)
        await pause(300)
        expect(await cluster.says('node', 'drain', 'n1')).toBe('n1 gives its mail to the other nodes and refuses new mail\n')
        await until('refused', 30_000, async () => (await replyToMail(first.port)).startsWith('421 4.3.2 '))
        first.load.port = second.port
        expect(await cluster.says('node', 'list')).toMatch(/n1 +draining/)
        // Without a name it is the node of the machine.
        const drain = await cluster.run(['node', 'drain', '--wait'], { node_name: 'n1' }).ended
        expect(drain).toMatchObject({ code: 0, out: 'n1 has no mail any more\n' })
        await cluster.shared('n2')
        await cluster.says('node', 'undrain', 'n1')
        await until('accepted', 30_000, async () => (await replyToMail(first.port)).startsWith('250 '))
        expect(await repeatedIn(cluster, nodes)).toBe(0)
        expect(Math.max(...cluster.far.map(({ mostInTransfer }) => mostInTransfer))).toBeLessThanOrEqual(2)

        // A command at the same moment shows how busy the machine is. A node that does not leave is taken over after its lease of 10 s.
        const begun = performance.now()
        const command = cluster.list().then(() => performance.now() - begun)
        const { code, took, err } = await cluster.stop(first)
        expect(code).toBe(0)
        expect(took).toBeLessThan(6_000 + 2 * (await command))
        expect(err).not.toMatch(/error|warning: (?!running as root)/)
        await cluster.shared('n2')
      }),
    )

    test(
      'commands read and change the queue from a machine without a daemon',
      story(async (cluster) => {
        const [node] = await cluster.startAll('n1')
        if (node === undefined) throw new Error('a node was started')
        for (const far of cluster.far) far.isBusy = true
        await cluster.shared('n1')
        node.load.start(1, recipientOf)
        await until('queued', 30_000, () => node.load.acknowledged.size >= 8)
        await node.load.close()
        const tried = `select count(*) as n from recipient where state = 'waiting' and attempts > 0`
        await until('tried', 30_000, async () => Number((await cluster.server.query(tried))[0]?.['n']) === node.load.acknowledged.size)
        expect(await cluster.says('queue', 'list', '--count')).toBe(`${node.load.acknowledged.size}\n`)
        const [queueId = ''] = node.load.acknowledged.values()
        expect(await cluster.says('queue', 'show', queueId)).toContain(queueId)
        expect(await cluster.says('queue', 'cat', queueId)).toContain('Subject: crash')

        expect(await cluster.says('queue', 'hold', queueId)).toMatch(/1 message/)
        expect(await cluster.says('queue', 'list', '--queue', 'hold', '--count')).toBe('1\n')
        await cluster.says('queue', 'release', queueId)
        const [destination = ''] = (await cluster.says('destination', 'list', '--json')).split('\n')
        const { destination: name, node: owner } = JSON.parse(destination) as { destination: string; node: string }
        expect(owner).toBe('n1')
        await cluster.says('destination', 'suspend', name, '--reason', 'maintenance')
        await until('suspended at the node', 30_000, async () => (await cluster.says('destination', 'show', name)).includes('suspended'))
        await cluster.says('destination', 'resume', name)
        expect(await cluster.says('audit')).toMatch(/suspend .*maintenance.*, at machine\)/)
        expect(await cluster.says('audit', '--json')).toContain('"node":"machine"')
        expect(await cluster.says('status')).toMatch(/is running[^]*NODE +STATE[^]*n1 +active/)
        const { nodes } = JSON.parse(await cluster.says('status', '--json')) as { nodes: readonly object[] }
        expect(nodes).toMatchObject([{ name: 'n1', state: 'active', shards: 256 }])
        expect(await cluster.says('node', 'show', 'n1')).toMatch(/shards +256/)

        const { promise: gate, resolve: openGate } = Promise.withResolvers<void>()
        for (const far of cluster.far) {
          far.isBusy = false
          far.gate = gate
        }
        await cluster.says('queue', 'flush', queueId)
        await until('in delivery', 30_000, async () =>
          (await cluster.says('queue', 'show', queueId)).includes('is in delivery, leased by n1'),
        )
        expect(await cluster.says('queue', 'show', queueId, '--json')).toContain('"leased_by":"n1"')
        openGate()
        await cluster.says('queue', 'flush', '--all')
        await until('delivered', 30_000, () => cluster.delivered().size === node.load.acknowledged.size)
        const backup = await cluster.run(['backup', '/nowhere']).ended
        expect(backup).toMatchObject({ code: 64, err: expect.stringContaining('pg_dump') })
        const forget = await cluster.run(['node', 'forget', 'n1']).ended
        expect(forget).toMatchObject({ code: 75, err: expect.stringContaining('n1 is alive') })
      }),
    )

    test(
      'a node that is drained is not ready at once, long before its next beat, and stays healthy and alive',
      story(async (cluster) => {
        const [node] = await cluster.startAll('n1')
        if (node === undefined) throw new Error('a node was started')
        await cluster.shared('n1')
        const probe = async (path: string) => {
          const response = await fetch(`http://127.0.0.1:${node.http}/${path}`)
          return { status: response.status, body: await response.json() }
        }
        expect(await probe('readyz')).toEqual({
          status: 200,
          body: { ready: true, store: 'ok', writer: 'ok', space: 'ok', node: 'ok', standby: 'ok', drained: 'ok' },
        })
        await cluster.says('node', 'drain', 'n1')
        // Ten times the promised second; a beat comes every 12 s.
        await until('not ready', 10_000, async () => (await probe('readyz')).status === 503)
        expect(await probe('readyz')).toMatchObject({ body: { ready: false, drained: expect.stringContaining('deferd node undrain') } })
        expect([(await probe('healthz')).status, (await probe('livez')).status]).toEqual([200, 200])
        await cluster.says('node', 'undrain', 'n1')
        await until('ready', 10_000, async () => (await probe('readyz')).status === 200)
      }, '60s'),
    )

    test(
      'a start is refused when the loss of a server would lose acknowledged mail, and /healthz fails while the database is away',
      story(async (cluster) => {
        const { code, err } = await cluster.run(['start'], { queue_database_durability: 'replicated' }).ended
        expect(code).toBe(78)
        expect(err).toMatch(/^deferd: queue_database: .*synchronous_standby_names is empty.*queue_database_durability = "primary"/m)

        const checked = await cluster.run(['check'], { admin_listen: `127.0.0.1:${await portBelowEphemeral()}` }).ended
        expect(checked.out).toMatch(/^warning queue +there is no queue yet; deferd start creates it$/m)
        expect(checked.out).toMatch(/^ok +admin port /m)
        expect(checked.code).toBe(0)
        const [node] = await cluster.startAll('n1')
        if (node === undefined) throw new Error('a node was started')
        await cluster.shared('n1')
        const health = async () => (await fetch(`http://127.0.0.1:${node.http}/healthz`)).status
        expect(await health()).toBe(200)
        await cluster.server.stop('immediate')
        await until('unhealthy', 30_000, async () => (await health()) === 503)
        await until('refused', 30_000, async () => (await replyToMail(node.port)).startsWith('451 4.3.0 '))
        await cluster.server.start()
        await until('healthy', 30_000, async () => (await health()) === 200)
        await until('accepted', 30_000, async () => (await replyToMail(node.port)).startsWith('250 '))
        expect(node.process.err).not.toContain('was taken over')
        // The gauge shows the last beat, which may be that before the shards were taken.
        await until('own shards', 30_000, async () => {
          const metrics = await (await fetch(`http://127.0.0.1:${node.http}/metrics`)).text()
          return metrics.includes('deferd_shards{owner="own"} 256')
        })
      }),
    )
  },
)

/** The reply to MAIL of a new session. */
async function replyToMail(port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  try {
    const next = repliesOf(socket)
    let reply = await next()
    for (const line of ['EHLO probe.example', 'MAIL FROM:<probe@us.example>']) {
      socket.write(`${line}\r\n`)
      reply = await next()
    }
    return reply ?? ''
  } finally {
    socket.destroy()
  }
}
