/** Several daemons on one queue in PostgreSQL deliver to the domains of one provider, whose limit holds for all of them together. */
import { expect, test } from 'vitest'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { textOf, type PageScreen } from '../support/page-client.ts'
import { startWithPage, type PageNode } from '../support/nodes/page-node.ts'
import { PROVIDER_ADDRESS, startProviderZone, type ProviderZone } from '../support/nodes/provider-zone.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { RemoteLedger } from '../support/remote-ledger.ts'

const reason = reasonWithoutPostgres()
const LIMIT = 5
const DOMAINS = 50
const MESSAGES = 100
const TABLE = `[provider.big]\nmx = [".big.example"]\nprovider_concurrency_limit = ${LIMIT}\n`

const settingsFor = (zone: ProviderZone, port: number): Readonly<Record<string, string>> => ({
  dns_servers: zone.address,
  smtp_tcp_port: String(port),
  smtp_allow_private_addresses: 'yes',
  smtp_tls_mta_sts: 'no',
  inet_protocols: 'ipv4',
  node_lease: '5s',
})

test.skipIf(reason !== null)(
  `three nodes never have more than ${LIMIT} deliveries to a provider at once${reason === null ? '' : ` (skipped: ${reason})`}`,
  { timeout: 120_000 },
  async () => {
    const [zone, provider] = [await startProviderZone(), new RemoteLedger()]
    // Longer than the submission of a message takes: there is always more mail than the limit lets pass.
    provider.delay = 200
    const cluster = await NodeCluster.open(settingsFor(zone, await provider.listen(PROVIDER_ADDRESS)), {}, 1, TABLE)
    try {
      const nodes = await cluster.startAll('n1', 'n2', 'n3')
      await cluster.shared('n1', 'n2', 'n3')
      let domain = 0
      for (const { load } of nodes) {
        load.pace = 20
        load.start(4, () => `user@d${domain++ % DOMAINS}.customer.example`)
      }
      await until('acknowledged', 60_000, () => nodes.reduce((sum, { load }) => sum + load.acknowledged.size, 0) >= MESSAGES)
      await Promise.all(nodes.map(({ load }) => load.close()))
      const acknowledged = nodes.flatMap(({ load }) => [...load.acknowledged.keys()])
      await until('delivered', 60_000, () => acknowledged.every((number) => provider.delivered.has(number)))
      expect(provider.mostInTransfer).toBe(LIMIT)
      expect([...provider.delivered.values()].every((times) => times === 1)).toBe(true)
      const members = await cluster.server.query(`select provider, count(*)::int as found from provider_member group by provider`)
      expect(members).toEqual([{ provider: 'big', found: DOMAINS }])
      const shown = JSON.parse((await cluster.says('destination', 'show', 'd7.customer.example', '--json')).trim()) as { provider: string }
      expect(shown.provider).toBe('big')
    } finally {
      await cluster.close()
      await Promise.all([provider.close(), zone.close()])
    }
  },
)

interface ShownProvider {
  readonly provider: string
  readonly waiting: number
  readonly waiting_destinations: readonly { readonly waiting: number }[]
}

/** Recipients that wait for the provider, as the page of one provider and the API show them in four places. */
async function waitingAt({ page }: PageNode, shown?: PageScreen): Promise<Readonly<Record<string, number>>> {
  const screen = shown ?? (await page.open('providers/big'))
  const one = (await page.json('providers/big')) as ShownProvider
  const { providers } = (await page.json('providers')) as { readonly providers: readonly ShownProvider[] }
  const { largest_destinations: largest } = (await page.json('now')) as {
    readonly largest_destinations: ShownProvider['waiting_destinations']
  }
  const sumOf = (those: ShownProvider['waiting_destinations']): number => those.reduce((sum, { waiting }) => sum + waiting, 0)
  return {
    sentence: Number(/(\d+) recipients wait/.exec(textOf(screen))?.[1]),
    one: one.waiting,
    'destinations of one': sumOf(one.waiting_destinations),
    list: providers.find(({ provider }) => provider === 'big')?.waiting ?? 0,
    now: sumOf(largest),
  }
}

test.skipIf(reason !== null)(
  `two nodes show each waiting recipient of a provider once, also just after a resume and a suspension${reason === null ? '' : ` (skipped: ${reason})`}`,
  { timeout: 240_000 },
  async () => {
    const [zone, provider] = [await startProviderZone(), new RemoteLedger()]
    // So that few deliveries end while the counts are compared.
    provider.delay = 4_000
    const cluster = await NodeCluster.open(settingsFor(zone, await provider.listen(PROVIDER_ADDRESS)), {}, 1, TABLE)
    try {
      const nodes = await Promise.all([startWithPage(cluster, 'n1'), startWithPage(cluster, 'n2')])
      await cluster.shared('n1', 'n2')
      const [first, second] = nodes
      const number = async (text: string) => Number((await cluster.server.query(text))[0]?.['n'])
      const queued = () => number(`select count(*) as n from recipient where settled_at is null`)
      const leased = () => number(`select count(*) as n from recipient where state = 'leased'`)
      const { load } = first.node
      load.pace = 1
      load.start(2, (of) => `user@d${of % 4}.customer.example`)
      await until('queued', 60_000, () => load.acknowledged.size >= 150)
      await load.close()
      await until('known', 60_000, async () => (await number(`select count(*) as n from provider_member`)) === 4)
      const most = await queued()
      const pressed = async ({ page }: PageNode, verb: 'Suspend' | 'Resume', entered = {}) =>
        page.press(await page.open(`providers/big/${verb.toLowerCase()}`), verb, entered)
      const looks: (readonly [string, Readonly<Record<string, number>>])[] = []
      const look = async (when: string, actor: PageNode, screen: PageScreen) => {
        for (const node of nodes) looks.push([when, await waitingAt(node, node === actor ? screen : undefined)])
      }
      for (const actor of [first, second]) {
        const suspended = await pressed(actor, 'Suspend', { reason: 'maintenance', for: '2h' })
        await look('suspended', actor, suspended)
        await until('given back', 30_000, async () => (await leased()) <= LIMIT)
        // The counts of the store are of the time before the resume for some seconds.
        await look('given back', actor, await actor.page.open('providers/big'))
        const resumed = await pressed(actor, 'Resume')
        await look('resumed', actor, resumed)
        await until('claimed', 30_000, async () => (await leased()) > LIMIT)
        await look('claimed', actor, await actor.page.open('providers/big'))
      }
      const least = (await queued()) - LIMIT
      expect(most - least).toBeLessThan(most / 2)
      const wrong = looks.filter(([, counts]) => Object.values(counts).some((waiting) => !(waiting >= least && waiting <= most)))
      expect({ least, most, wrong }).toEqual({ least, most, wrong: [] })
    } finally {
      await cluster.close()
      await Promise.all([provider.close(), zone.close()])
    }
  },
)
