/** A node that gives its destinations away and takes them back, in virtual time: what it says of their attempts. */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { emptyQueue } from '../../src/store/memory/queue-state.ts'
import { createWorld } from '../../src/testkit/index.ts'
import { startWorldNode } from '../support/world-node.ts'

test('the attempts at a destination and the outcomes of the last ones begin anew together when its shard returns', async () => {
  await using world = await createWorld()
  world.destination('far.example').defers('*', '450 4.2.1 busy')
  const settings = { minimal_backoff_time: '1h' }
  const node = await startWorldNode(world, emptyQueue(), { hostname: 'n1.example', port: 2601, settings })
  const { relay, nodes } = node
  const drain = async (draining: boolean): Promise<void> => {
    await nodes.setDraining(nodes.me, draining)
    await world.advance('1m')
  }
  await world.advance('1m')
  const transport = createTransport(node.transport())
  const to = Array.from({ length: 12 }, (_, n) => `to${n}@far.example`)
  const attempts = () => {
    const { outcomes, causes, windows } = relay.status.recentAttempts('far.example')
    const count = relay.scheduler.destinations.status('far.example')?.undelivered?.count ?? 0
    return { count, outcomes: outcomes.length, causes: causes.length, windows: windows.length }
  }
  await transport.sendMail({ from: 'ann@shop.example', to, text: 'hi' })
  await world.advance('1m')
  expect(attempts()).toMatchObject({ count: 12, outcomes: 12, causes: 1 })
  await drain(true)
  expect(relay.scheduler.destinations.status('far.example')).toBeUndefined()
  await drain(false)
  expect(relay.scheduler.destinations.status('far.example')?.nextDueAt).toBeGreaterThan(world.clock.now())
  expect(attempts()).toEqual({ count: 0, outcomes: 0, causes: 0, windows: 0 })
  await world.advance('1h')
  expect(attempts()).toMatchObject({ count: 12, outcomes: 12, causes: 1 })
  await node.stop()
})
