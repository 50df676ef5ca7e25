/** Nodes with a `myhostname` each whose mail to the postmaster cannot be delivered, in virtual time. */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { emptyQueue } from '../../src/store/memory/queue-state.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import { createWorld } from '../../src/testkit/index.ts'
import { startWorldNode, type WorldNode } from '../support/world-node.ts'

/** Each in a shard of the other node. */
const HOSTNAMES = ['mx2.example', 'mx1.example']

/** Senders and recipients of clients. Each domain refuses all mail. */
const DOMAINS = Array.from({ length: 8 }, (_, n) => `gone${n}.example`)

test('mail to the postmaster of a node that another one cannot deliver causes no notice, and notices about it are discarded', async () => {
  await using world = await createWorld()
  const queue = emptyQueue()
  /** Sender and recipient of each notice. */
  const notices: string[] = []
  const onEvent = (event: QueueEvent): void => {
    if (event.kind === 'notice-sent') notices.push(`${event.queued.message.sender} to ${event.queued.recipients.join()}`)
  }
  const nodes: WorldNode[] = []
  const settings = { notify_classes: 'bounce, 2bounce' }
  for (const [n, hostname] of HOSTNAMES.entries())
    nodes.push(await startWorldNode(world, queue, { hostname, port: 2601 + n, settings, onEvent }))
  for (const domain of [...DOMAINS, ...HOSTNAMES]) world.destination(domain).rejects()
  await world.advance('2m')
  for (const [n, { member }] of nodes.entries()) expect(member.owns(HOSTNAMES[n] ?? '')).toBe(false)
  for (const node of nodes) {
    const transport = createTransport(node.transport())
    for (const domain of DOMAINS) await transport.sendMail({ from: `app@${domain}`, to: `ann@${domain}`, text: 'hi' })
    const to = HOSTNAMES.map((hostname) => `Double-Bounce@${hostname}`)
    await transport.sendMail({ envelope: { from: '', to }, text: 'returned' })
  }
  await world.advance('10m')
  // Of each message: the notice to its sender with the copy to the postmaster, and the report that the notice was not delivered either.
  const kinds = Map.groupBy(notices, (one) => one.replaceAll(/\d/g, ''))
  expect(Object.fromEntries([...kinds].map(([kind, { length }]) => [kind, length]))).toEqual({
    ' to app@gone.example': 16,
    'double-bounce@mx.example to postmaster@mx.example': 32,
  })
  expect(queue.messages.size).toBe(0)
  for (const node of nodes) await node.stop()
})
