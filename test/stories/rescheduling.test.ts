/** An operator's `queue reschedule`: scheduled mail and other mail get another time, once answered nothing begins before, and an undo. */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { queueIdOf } from '../../src/mail/message.ts'
import { Operations } from '../../src/queue/operations.ts'
import { Events } from '../../src/telemetry/events.ts'
import { ANY_ENTRY } from '../../src/store/records/audit-log.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import { QueueWorld } from '../support/queue-world.ts'

const HELD = { smtpd_future_release_limit: '7d', delay_warning_time: '1h' } as const

const attemptsAt = (world: World, address: string): readonly number[] => world.attempts(address).map(({ at }) => at)

async function idsIn(world: World): Promise<readonly string[]> {
  return (await world.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })).map(({ message }) => queueIdOf(message))
}

test('scheduled and deferred mail are sent at the time, which no flush hastens', async () => {
  await using world = await createWorld({ config: HELD })
  world.destination('busy.example').defers('*', '450 4.2.1 busy')
  await world.submit({ to: 'ann@far.example', notBefore: '1h' })
  await createTransport(world.transport()).sendMail({ from: 'app@us.example', to: 'eve@busy.example', text: 'hi' })
  await world.advance('10m')
  expect(attemptsAt(world, 'eve@busy.example')).toEqual([0, 300])
  expect(await world.operate('reschedule', 'all', { notBefore: '5h' })).toMatchObject({ matched: 2, changed: 2, inTransfer: 0 })
  expect(await world.operate('flush')).toMatchObject({ changed: 0, scheduled: 2 })
  await world.advance('2h')
  await world.restart()
  await world.advance('3h')
  expect(attemptsAt(world, 'ann@far.example')).toEqual([18_600])
  expect(attemptsAt(world, 'eve@busy.example')).toEqual([0, 300, 18_600])
  // Warnings are counted from the new time.
  expect(world.mailbox('app@us.example').notices()).toEqual([])
})

test('the lifetime is counted from the new time, and a hold wins', async () => {
  await using world = await createWorld({ config: { ...HELD, maximal_queue_lifetime: '1d' } })
  world.destination('busy.example').defers('*', '450 4.2.1 busy')
  const id = await world.submit({ to: 'eve@busy.example' })
  await world.advance('1m')
  await world.operate('hold', [id])
  await world.operate('reschedule', [id], { notBefore: '2d' })
  await world.operate('release', [id])
  await world.advance('4d')
  expect(attemptsAt(world, 'eve@busy.example').slice(0, 2)).toEqual([0, 2 * 86_400 + 60])
  expect(attemptsAt(world, 'eve@busy.example').at(-1)).toBe(3 * 86_400 + 60)
})

test('an instant follows the wall clock, and a time in the past is now', async () => {
  await using world = await createWorld({ config: HELD })
  const [one, two] = [
    await world.submit({ to: 'ann@far.example', notBefore: '9h' }),
    await world.submit({ to: 'bob@far.example', notBefore: '9h' }),
  ]
  await world.operate('reschedule', [one], { notBefore: '2026-01-01T04:00:00Z' })
  await world.advance('1h')
  world.stepClock('1h')
  await world.advance('2h')
  expect(attemptsAt(world, 'ann@far.example')).toEqual([3 * 3600])
  await world.operate('reschedule', [two], { notBefore: '2026-01-01T00:00:00Z' })
  await world.advance('1s')
  expect(attemptsAt(world, 'bob@far.example')[0]).toBeCloseTo(3 * 3600, 0)
})

test('an undo gives the former times to mail that is still scheduled', async () => {
  const world = await QueueWorld.create({
    remote: ({ destination }) => (destination === 'far.example' ? { kind: 'replies', reply: '450 4.2.1 busy' } : { kind: 'accepts' }),
  })
  const id = await world.accept(['ann@far.example'])
  await world.advance(10_000)
  const { relay, clock } = world
  expect(await world.dueAt('ann@far.example')).toBe(300)
  expect(await world.operate('reschedule', [id], { notBefore: '2h' })).toMatchObject({ changed: 1 })
  expect(await world.dueAt('ann@far.example')).toBe(7_210)
  expect((await world.reader.details(id))?.message.holdRequest).toBe('operator;for;7200')
  const [entry] = await world.reader.records.audit.before({ ...ANY_ENTRY, action: 'reschedule' }, { before: null, limit: 1 })
  expect(entry).toMatchObject({ arguments: `--in=2h ${id}`, undoUntil: clock.now() + 7_200_000 })
  const { policies, recorder, schedulerControl: scheduler } = relay
  const { store, reader } = world
  const events = new Events(() => clock.now())
  const whole = { store, reader, clock, events, recorder, scheduler }
  const operations = new Operations({ ...whole, policies: () => policies, retention: () => relay.config })
  expect(await operations.undo({ operation: entry?.id ?? 0, who: 'op', reason: null })).toMatchObject({ changed: 1 })
  expect(await world.dueAt('ann@far.example')).toBe(300)
  expect((await world.recipient('ann@far.example'))?.expiresAt).toBe(clock.now() - 10_000 + relay.config.maximal_queue_lifetime)
  await world.advance(290_000)
  expect(world.tried('far.example')).toEqual([0, 300])
})

test('mail that is claimed and waits for a slot is taken back; mail in transfer is left alone, and counted', async () => {
  const world = await QueueWorld.create({
    remote: () => ({ kind: 'accepts', takes: 60_000 }),
    config: { default_destination_concurrency_limit: 1, initial_destination_concurrency: 1 },
  })
  for (const name of ['ann', 'bob', 'eve']) await world.accept([`${name}@far.example`])
  await world.advance(1_000)
  expect(await world.operate('reschedule', 'all', { notBefore: '1h' })).toMatchObject({ matched: 3, changed: 2, inTransfer: 1 })
  await world.advance(3_599_000)
  expect(world.tried('far.example')).toEqual([0])
  await world.advance(120_000)
  expect(world.tried('far.example')).toEqual([0, 3_601, 3_661])
  await world.close()
})

test('the queue of scheduled mail is a selection', async () => {
  await using world = await createWorld({ config: HELD })
  await world.submit({ to: 'ann@far.example', notBefore: '1h' })
  expect(await idsIn(world)).toHaveLength(1)
  await expect(world.operate('reschedule')).rejects.toThrow('needs notBefore')
  await expect(world.operate('flush', 'all', { notBefore: '1h' })).rejects.toThrow('needs notBefore')
})
