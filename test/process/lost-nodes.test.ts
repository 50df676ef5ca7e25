/** Two nodes on PostgreSQL, of which one is killed and then stopped: the page and the status of the other one name both. */
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { NODE_EXAMPLES } from '../support/api-tour.ts'
import { NodeCluster, until, type ClusterNode } from '../support/node-cluster.ts'
import { PageClient, textOf } from '../support/page-client.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()

/** The promise is 10 s with the default lease of 5 s; a loaded machine gets more. */
const LIMIT = 100_000

/** A page, and the root of its API with the token of an administrator. */
interface Reached {
  readonly node: ClusterNode
  readonly page: PageClient
  readonly api: (method: string, path: string) => Promise<unknown>
}

interface Nodes {
  readonly nodes: readonly {
    readonly name: string
    readonly state: string
    readonly answers: boolean
    readonly shards: number
    readonly deliveries: object | null
    readonly lost: { readonly taken_over_by: string; readonly shards: number } | null
  }[]
}

interface AuditRecord {
  readonly action: string
  readonly arguments: string
  readonly changed: number
  readonly node: string
}

interface Attention {
  readonly attention: readonly { readonly kind: string; readonly text: string }[]
}

async function startWithPage(cluster: NodeCluster, name: string, settings = {}): Promise<Reached> {
  const port = await portBelowEphemeral()
  const node = await cluster.start(name, { admin_listen: `127.0.0.1:${port}`, ...settings })
  const root = `http://127.0.0.1:${port}`
  const token = (await cluster.says('token', 'add', `tests-${name}`, '--role', 'admin')).trim()
  const api = async (method: string, path: string): Promise<unknown> => {
    const answer = await fetch(`${root}/api/v1${path}`, { method, headers: { authorization: `Bearer ${token}` } })
    expect(answer.status, `${method} ${path}`).toBe(200)
    return answer.json()
  }
  return { node, api, page: await PageClient.logIn(`${root}/`, join(node.folder.path, 'queue')) }
}

/** Waits until page, API and status of a node say that the other one is lost. */
async function reported(cluster: NodeCluster, page: PageClient): Promise<void> {
  await until('on the page', LIMIT, async () => textOf(await page.open('')).includes('1 node lost: n1, taken over by n2'))
  const { attention } = (await page.json('now')) as Attention
  expect(attention).toContainEqual(expect.objectContaining({ kind: 'nodes-lost', text: 'n1, taken over by n2' }))
  const status = (await cluster.says('status')).replaceAll(/\s+/g, ' ')
  expect(status).toMatch(/node n1 is lost: no sign of life for \S+(?: \S+)?; n2 has taken its \d+ shards and 0 recipients over/)
  expect(status).toContain('deferd node forget n1')
  const { nodes } = (await page.json('nodes')) as Nodes
  expect(nodes).toMatchObject([
    { name: 'n1', state: 'lost', answers: false, shards: 0, deliveries: null, lost: { taken_over_by: 'n2' } },
    { name: 'n2', state: 'active', answers: true, deliveries: { in_flight: 0 }, lost: null },
  ])
  const screen = textOf(await page.open('nodes'))
  expect(screen).toContain('1 node of 2 is alive; n1 failed.')
  expect(screen).toContain('This page comes from n2.')
}

/** Waits until the page of a node shows that both are alive. */
const joined = (page: PageClient): Promise<void> =>
  until('both alive', LIMIT, async () => {
    const [screen, now] = [textOf(await page.open('nodes')), textOf(await page.open(''))]
    return screen.includes('2 nodes share the queue, and all of them are alive') && !now.includes('node lost')
  })

describe.skipIf(reason !== null)(`a lost node${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  test(
    'needs attention on the page and in the status of the other node, until it joins again or is forgotten',
    { timeout: 400_000 },
    async () => {
      const cluster = await NodeCluster.open({ node_lease: '5s' })
      try {
        const [{ node: lost }, { page, api }] = await Promise.all([
          startWithPage(cluster, 'n1', { maximal_backoff_time: '1h' }),
          startWithPage(cluster, 'n2'),
        ])
        await cluster.shared('n1', 'n2')
        await joined(page)

        const differing = [
          { node: 'n1', value: '1h' },
          { node: 'n2', value: '4000s' },
        ]
        expect(await page.json('settings')).toMatchObject({
          between_nodes: { differing: [{ name: 'maximal_backoff_time', default: '4000s', values: differing }], unanswered: [] },
        })
        expect(textOf(await page.open('settings'))).toContain('maximal_backoff_time n1: 1h n2: 4000s')
        expect(await cluster.says('node', 'settings')).toBe('maximal_backoff_time (default: 4000s)\n  n1  1h\n  n2  4000s\n')

        lost.process.child.kill('SIGKILL')
        await reported(cluster, page)
        await cluster.restart(lost)
        await joined(page)

        const again = cluster.nodes.get('n1') ?? lost
        const own = await PageClient.logIn(`http://${again.settings['admin_listen']}/`, join(again.folder.path, 'queue'))
        again.process.child.kill('SIGSTOP')
        await reported(cluster, page)
        // Requests that meet the queue open, closed and open again.
        const isJoined = joined(page).then(() => true)
        again.process.child.kill('SIGCONT')
        while (!(await Promise.race([isJoined, pause(5, false)])))
          await Promise.all(['', 'trends', 'charts/flow'].map((path) => own.open(path).catch(String)))

        // Draining from the page, and the end of it.
        await page.press(await page.open('nodes/n1/drain'), 'Drain n1')
        await until('drained', LIMIT, async () => textOf(await page.open('nodes')).includes('n1 draining'))
        await page.press(await page.open('nodes/n1/undrain'), 'Undrain n1')
        await until('undrained', LIMIT, async () => textOf(await page.open('nodes')).includes('n1 active'))

        for (const change of ['drain', 'undrain'])
          expect(await api('POST', `/nodes/n1/${change}`)).toEqual(NODE_EXAMPLES[`POST /nodes/:name/${change}`])

        again.process.child.kill('SIGKILL')
        await reported(cluster, page)
        expect(await api('DELETE', '/nodes/n1')).toEqual(NODE_EXAMPLES['DELETE /nodes/:name'])
        expect(await cluster.says('node', 'list')).not.toContain('n1')
        await cluster.restart(again)
        await joined(page)

        cluster.nodes.get('n1')?.process.child.kill('SIGKILL')
        await reported(cluster, page)
        const forgotten = textOf(await page.press(await page.open('nodes/n1/forget'), 'Forget n1'))
        expect(forgotten).toContain('1 node has the queue')
        expect(await cluster.says('node', 'list')).not.toContain('n1')

        // Each change is of one node, and was made at the node that was asked.
        const { records } = (await page.json('audit')) as { readonly records: readonly AuditRecord[] }
        const changes = records.map(({ action, arguments: name, changed, node }) => `${action} ${name}: ${changed}, at ${node}`)
        expect(changes.filter((change) => /^(?:forget|(?:un)?drain) /.test(change)).toReversed()).toEqual([
          'drain n1: 1, at n2',
          'undrain n1: 1, at n2',
          'drain n1: 1, at n2',
          'undrain n1: 1, at n2',
          'forget n1: 1, at n2',
          'forget n1: 1, at n2',
        ])
      } finally {
        await cluster.close()
      }
    },
  )
})
