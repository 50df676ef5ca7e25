/** Several daemons on one queue in PostgreSQL deliver to 50 domains of one provider, whose limit holds for all of them together. */
import { expect, test } from 'vitest'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { PROVIDER_ADDRESS, startProviderZone } from '../support/nodes/provider-zone.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { RemoteLedger } from '../support/remote-ledger.ts'

const reason = reasonWithoutPostgres()
const LIMIT = 5
const DOMAINS = 50
const MESSAGES = 100

test.skipIf(reason !== null)(
  `three nodes never have more than ${LIMIT} deliveries to a provider at once${reason === null ? '' : ` (skipped: ${reason})`}`,
  { timeout: 120_000 },
  async () => {
    const [zone, provider] = [await startProviderZone(), new RemoteLedger()]
    // Longer than the submission of a message takes: there is always more mail than the limit lets pass.
    provider.delay = 200
    const settings = {
      dns_servers: zone.address,
      smtp_tcp_port: String(await provider.listen(PROVIDER_ADDRESS)),
      smtp_allow_private_addresses: 'yes',
      smtp_tls_mta_sts: 'no',
      inet_protocols: 'ipv4',
      node_lease: '5s',
    }
    const tables = `[provider.big]\nmx = [".big.example"]\nprovider_concurrency_limit = ${LIMIT}\n`
    const cluster = await NodeCluster.open(settings, {}, 1, tables)
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
