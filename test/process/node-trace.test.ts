/** `deferd trace` where two nodes share a queue: it shows the sessions of its own node, and names the one that delivers to a destination. */
import { expect, test } from 'vitest'
import { NodeCluster, type ClusterNode } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

/** So many that the second node schedules one of them: names, and so the shards, differ in each run. */
const DESTINATIONS = 16

const reason = reasonWithoutPostgres()

test.skipIf(reason !== null)('a trace of two nodes', { timeout: 300_000 }, async () => {
  const cluster = await NodeCluster.open({}, {}, DESTINATIONS)
  try {
    const [first, second] = [await cluster.start('first'), await cluster.start('second')]
    await cluster.shared('first', 'second')
    const trace = ({ folder }: ClusterNode, destination: string, time: string) =>
      cluster.run(['trace', '--destination', destination, '--count', '1', '--for', time], {}, folder).ended

    const elsewhere = await trace(first, 'x.*', '1s')
    expect([elsewhere.code, elsewhere.out]).toEqual([75, ''])
    expect(elsewhere.err).toMatch(/^deferd: shows sessions of node first, not of second\n/)

    let index = -1
    let told = ''
    while (!told.includes('; second delivers') && ++index < DESTINATIONS)
      told = (await trace(first, cluster.destinations[index] ?? '', '1s')).err
    expect(told).toMatch(/^deferd: shows sessions of node first, not of second; second delivers to the destination: trace there\n/)

    // Mail that the first node accepts is delivered by the second one.
    const [here, there] = [first, second].map((node) => trace(node, cluster.destinations[index] ?? '', node === first ? '20s' : '5m'))
    first.load.pace = 1
    first.load.start(1, () => `ann@d${index}.example`)
    const shown = await there
    await first.load.close()
    expect([shown?.code, shown?.err]).toEqual([0, 'deferd: shows sessions of node second, not of first\n'])
    expect(shown?.out).toMatch(/^1: # deferd session, smtp to 127\.0\.0\.1[^]*C RCPT TO:<ann@d\d+\.example>/)
    expect(await here).toMatchObject({ code: 75, out: '' })
  } finally {
    await cluster.close()
  }
})
