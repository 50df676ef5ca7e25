/** Two daemons on one queue in PostgreSQL: the list of the nodes compares the settings since the last reload. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()

describe.skipIf(reason !== null)(`the reload of a node${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  test('shows the other nodes and commands the settings that differ from then on', { timeout: 240_000 }, async () => {
    const cluster = await NodeCluster.open()
    try {
      await cluster.start('n1')
      const tables = readFileSync(cluster.config, 'utf8')
      cluster.config = join(cluster.newFolder().path, 'second.toml')
      writeFileSync(cluster.config, tables)
      const { process } = await cluster.start('n2')
      const differing = async () => {
        const lines = (await cluster.says('node', 'list', '--json')).trim().split('\n')
        const nodes = lines.map((line) => JSON.parse(line) as { readonly name: string; readonly differing_settings: readonly string[] })
        return nodes.map(({ name, differing_settings: settings }) => `${name}: ${settings.join(', ')}`)
      }
      /** Waits until the database has so many different settings of nodes. */
      const written = (count: number): Promise<void> =>
        until(`${count} settings`, 100_000, async () => {
          const [row] = await cluster.server.query(`select count(distinct settings)::int as count from node where settings <> ''`)
          return row?.['count'] === count
        })
      expect(await differing()).toEqual(['n1: ', 'n2: '])

      writeFileSync(cluster.config, `minimal_backoff_time = "120s"\n${tables}`)
      process.child.kill('SIGHUP')
      await written(2)
      expect(await differing()).toEqual(['n1: ', 'n2: minimal_backoff_time'])

      writeFileSync(cluster.config, tables)
      process.child.kill('SIGHUP')
      await written(1)
      expect(await differing()).toEqual(['n1: ', 'n2: '])
    } finally {
      await cluster.close()
    }
  })
})
