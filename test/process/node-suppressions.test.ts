/** The suppression list of several nodes: an entry is known to all of them, and refusals at several nodes list an address together. */
import { describe, expect, test } from 'vitest'
import { NodeCluster, until, type ClusterNode } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { dialogueAt } from '../support/world-dialogue.ts'

const reason = reasonWithoutPostgres()
const SETTINGS = { suppression: 'yes', suppression_bounce_limit: '2', suppression_bounce_interval: '1s' }

/** The reply to RCPT at a node. */
const rcpt = async ({ port }: ClusterNode, address: string): Promise<string> =>
  (await dialogueAt(port, ['HELO x', 'MAIL FROM:<app@us.example>', `RCPT TO:<${address}>`])).at(-1) ?? ''

async function send({ port }: ClusterNode, address: string): Promise<void> {
  const lines = ['HELO x', 'MAIL FROM:<app@us.example>', `RCPT TO:<${address}>`, 'DATA', 'Subject: hi\r\n\r\nhi\r\n.']
  expect((await dialogueAt(port, lines)).at(-1)).toMatch(/^250 /)
}

const REFUSED = /^550 5\.1\.1 .* on the suppression list since/

describe.skipIf(reason !== null)(`several nodes${reason === null ? '' : ` (skipped: ${reason})`}`, { timeout: 240_000 }, () => {
  test('an entry that is added or removed at one node has its effect at all', async () => {
    const cluster = await NodeCluster.open(SETTINGS, {}, 1)
    try {
      const nodes = await cluster.startAll('n1', 'n2')
      const replies = () => Promise.all(nodes.map((node) => rcpt(node, 'bob@d0.example')))
      expect((await replies()).every((one) => one.startsWith('250 '))).toBe(true)
      await cluster.says('suppression', 'add', 'bob@d0.example', '--scope', 'us.example')
      await until('both refuse', 60_000, async () => (await replies()).every((one) => REFUSED.test(one)))
      await cluster.says('suppression', 'remove', 'bob@d0.example', '--scope', 'us.example')
      expect((await replies()).every((one) => one.startsWith('250 '))).toBe(true)
    } finally {
      await cluster.close()
    }
  })

  test('a refusal at one node and one at another list the address, also for a third', async () => {
    const cluster = await NodeCluster.open(SETTINGS, {}, 1)
    const address = 'refuse-1@d0.example'
    const strikes = async (): Promise<number> =>
      Number((await cluster.server.query(`select hits from suppression where address = '${address}'`))[0]?.['hits'] ?? 0)
    try {
      const first = await cluster.start('n1')
      await send(first, address)
      await until('the first refusal is counted', 60_000, async () => (await strikes()) === 1)
      await cluster.stop(first)
      const second = await cluster.start('n2')
      await new Promise<void>((resolve) => void setTimeout(resolve, 1_500))
      await send(second, address)
      await until('the second refusal is counted', 60_000, async () => (await strikes()) === 2)
      await until('the address is refused', 60_000, async () => REFUSED.test(await rcpt(second, address)))
      expect(await rcpt(await cluster.start('n3'), address)).toMatch(REFUSED)
    } finally {
      await cluster.close()
    }
  })
})
