/** Mail that was returned because of an error of the remote side is sent again: to the recipients that it did not reach, once each. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RelayConfig } from '../../src/config/relay-config.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'

const KEPT: RelayConfig = { returned_content_retention: '7d' }

const copies = (world: World, address: string): number => world.attempts(address).filter(({ outcome }) => outcome === 'delivered').length

test('a returned message is sent again with its content, and a second time is refused', async () => {
  await using world = await createWorld({ config: KEPT })
  const far = world.destination('far.example')
  far.rejects('eve@far.example', '550 5.7.1 rejected by policy')
  const id = await world.submit({ to: ['ann@far.example', 'eve@far.example'], text: 'hello', envid: 'campaign-7' })
  await world.advance('1m')
  far.recovers()
  expect(await world.resend([id])).toMatchObject({ matched: 1, changed: 1, recipients: 1, sentBefore: 0 })
  await world.advance('1m')
  expect([copies(world, 'ann@far.example'), copies(world, 'eve@far.example')]).toEqual([1, 1])
  const [[first], [second]] = [world.mailbox('ann@far.example').mails(), world.mailbox('eve@far.example').mails()]
  expect(second?.content).toBe(first?.content)
  await expect(world.resend([id])).rejects.toThrow('failed recipients that were sent again before: 1')
  await world.resend([id], { again: true })
  await world.advance('1m')
  expect([copies(world, 'ann@far.example'), copies(world, 'eve@far.example')]).toEqual([1, 2])
})

test('what fails again can be sent again from its own record, with the same content', async () => {
  await using world = await createWorld({ config: KEPT })
  const far = world.destination('far.example')
  far.rejects('*', '550 5.7.1 rejected by policy')
  await world.submit({ to: 'eve@far.example' })
  await world.advance('1m')
  await world.resend()
  await world.advance('1m')
  far.recovers()
  expect(await world.resend()).toMatchObject({ changed: 1, sentBefore: 1 })
  await world.advance('1m')
  expect(copies(world, 'eve@far.example')).toBe(1)
})

test.each(['filter', 'ids'] as const)('mail that was sent again and failed again is sent once with again, selected by %s', async (by) => {
  await using world = await createWorld({ config: KEPT })
  const far = world.destination('far.example')
  far.rejects('*', '550 5.7.1 rejected by policy')
  const chain: string[] = []
  world.relayEvents.listen((event) => {
    if (event.kind === 'accepted' && event.originalId !== undefined) chain.push(queueIdOf(event.message))
  })
  chain.push(await world.submit({ to: ['ann@far.example', 'eve@far.example'] }))
  await world.advance('1m')
  for (const _ of ['second', 'third']) {
    await world.resend()
    await world.advance('1m')
  }
  far.recovers()
  expect(chain).toHaveLength(3)
  expect(await world.resend(by === 'ids' ? chain : 'all', { again: true })).toMatchObject({ changed: 1, recipients: 2, sentBefore: 4 })
  await world.advance('1m')
  expect([copies(world, 'ann@far.example'), copies(world, 'eve@far.example')]).toEqual([1, 1])
})

test('the content of a message whose other recipients were requeued is in the queue, and not among those that are kept', async () => {
  await using world = await createWorld({ config: KEPT })
  const far = world.destination('far.example')
  far.rejects('eve@far.example', '550 5.7.1 rejected by policy')
  far.defers('ann@far.example', '450 4.2.1 busy')
  const id = await world.submit({ to: ['ann@far.example', 'eve@far.example'] })
  await world.advance('1m')
  await world.operate('requeue', [id])
  await world.advance('1m')
  await expect(world.resend([id])).rejects.toThrow('failed recipients whose content went on with the others when these were requeued: 1')
})

test('without a retention, nothing is kept', async () => {
  await using world = await createWorld()
  world.destination('far.example').rejects()
  const id = await world.submit({ to: 'eve@far.example' })
  await world.advance('1m')
  await expect(world.resend([id])).rejects.toThrow('content is not kept (returned_content_retention): 1')
  await expect(world.resend(['4SVLCh0sf8z7Qhl'])).rejects.toThrow('ids that the history does not have: 1')
})

/** Two returned messages, of ann and eve, and of eve, who is on the suppression list since then. */
async function returned(world: World): Promise<readonly [id: string, other: string]> {
  const far = world.destination('far.example')
  far.rejects('*', '550 5.7.1 rejected by policy')
  const ids = [await world.submit({ to: ['ann@far.example', 'eve@far.example'] }), await world.submit({ to: 'eve@far.example' })] as const
  await world.advance('1m')
  far.recovers()
  await world.suppress('eve@far.example', { reason: 'unsubscribe' })
  return ids
}

describe.each(['memory', 'sqlite'] as const)('recipients on the suppression list, with the store %s', (store) => {
  test.each([
    ['yes', { matched: 1, recipients: 1, suppressed: 2 }, ['refused', 'refused'], 0],
    ['warn', { matched: 2, recipients: 3, suppressed: 0 }, ['warned', 'warned'], 2],
    ['no', { matched: 2, recipients: 3, suppressed: 0 }, [], 2],
  ] as const)('suppression = %s', async (suppression, summary, actions, toEve) => {
    await using world = await createWorld({ config: { ...KEPT, suppression }, store })
    const ids = await returned(world)
    const told: unknown[] = []
    world.relayEvents.listen((event) => event.kind === 'suppressed' && told.push(event))
    expect(await world.resend(ids)).toMatchObject({ ...summary, sentBefore: 0 })
    await world.advance('1m')
    expect([copies(world, 'ann@far.example'), copies(world, 'eve@far.example')]).toEqual([1, toEve])
    expect(told).toMatchObject(actions.map((action) => ({ recipient: 'eve@far.example', scope: '*', reason: 'unsubscribe', action })))
  })
})

test('when all recipients are on the suppression list, nothing is sent, and nothing is reported', async () => {
  await using world = await createWorld({ config: { ...KEPT, suppression: 'yes' } })
  const [, other] = await returned(world)
  const told: unknown[] = []
  world.relayEvents.listen((event) => event.kind === 'suppressed' && told.push(event))
  await expect(world.resend([other])).rejects.toThrow('failed recipients on the suppression list (deferd suppression remove): 1')
  expect(told).toEqual([])
})

test('a limit of the queue ends the operation, and nothing is sent beyond it', async () => {
  await using world = await createWorld({ config: { ...KEPT, queue_message_limit: 3 } })
  const far = world.destination('far.example')
  far.rejects()
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    await world.submit({ from: '', to: `${name}@far.example` })
    await world.advance('1m')
  }
  far.recovers()
  world.destination('busy.example').defers()
  for (const name of ['x', 'y', 'z']) await world.submit({ to: `${name}@busy.example` })
  await world.advance('1m')
  await expect(world.resend()).rejects.toThrow(/queue is full/)
  expect(['a', 'b', 'c', 'd', 'e'].map((name) => copies(world, `${name}@far.example`))).toEqual([0, 0, 0, 0, 0])
})

const messages = fc.array(fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 5 })
const steps = fc.array(fc.constantFrom('resend', 'restart', 'wait'), { minLength: 2, maxLength: 5 })

test('each failed recipient gets one copy, and a delivered one never a second, whatever is repeated', async () => {
  await fc.assert(
    fc.asyncProperty(messages, steps, async (mail, actions) => {
      await using world = await createWorld({ config: KEPT, store: 'memory' })
      const far = world.destination('far.example')
      const all = mail.flatMap((recipients, n) => recipients.map((fails, m) => ({ address: `r${n}-${m}@far.example`, fails })))
      for (const { address, fails } of all) if (fails) far.rejects(address, '550 5.7.1 rejected by policy')
      for (const [n, recipients] of mail.entries()) await world.submit({ to: recipients.map((_, m) => `r${n}-${m}@far.example`) })
      await world.advance('1m')
      far.recovers()
      for (const action of [...actions, 'resend', 'wait']) {
        if (action === 'resend') await world.resend().catch(() => undefined)
        else if (action === 'restart') await world.restart()
        else await world.advance('1m')
      }
      for (const { address } of all) expect([address, copies(world, address)]).toEqual([address, 1])
    }),
    { numRuns: 12 },
  )
})
