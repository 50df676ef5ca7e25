/** Cancellation by the submitter: after the answer no delivery to a cancelled recipient begins. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createWorld } from '../../src/testkit/create-world.ts'
import { raceCancellations } from '../support/cancel-races.ts'

const HELD = { smtpd_future_release_limit: '7d' } as const

test.each([1, 2, 3, 4, 5])('races of cancellations against the begin of attempts, seed %i', async (seed) => {
  const races = await raceCancellations(seed)
  expect(races).toMatchObject({ broken: [], lost: [] })
  expect(Math.min(races.cancelled, races.tooLate)).toBeGreaterThan(5)
})

test('a cancelled message stays cancelled after a crash, and its submitter gets no notice', async () => {
  await using world = await createWorld({ config: HELD, store: { directory: mkdtempSync(join(tmpdir(), 'deferd-cancel-')) } })
  const id = await world.submit({ to: ['ann@far.example', 'bob@far.example'], notBefore: '1h' })
  expect(await world.cancel(id)).toEqual({ cancelled: ['ann@far.example', 'bob@far.example'], tooLate: [] })
  await world.crash({ downFor: '1m' })
  await world.advance('3d')
  expect(world.attempts('ann@far.example')).toEqual([])
  expect(world.mailbox('app@us.example').mails()).toEqual([])
  expect(await world.events({ types: ['message.cancelled', 'message.removed'] })).toMatchObject([
    { type: 'message.removed' },
    { type: 'message.cancelled', data: { queue_id: id, by: 'app', recipients: ['ann@far.example', 'bob@far.example'] } },
  ])
})

test('mail that waits for a retry is cancelled, and what was delivered is too late', async () => {
  await using world = await createWorld()
  world.destination('busy.example').defers('*', '450 4.2.1 busy')
  const id = await world.submit({ to: ['ann@far.example', 'eve@busy.example'] })
  await world.advance('10s')
  expect(await world.cancel(id)).toEqual({ cancelled: ['eve@busy.example'], tooLate: ['ann@far.example'] })
  await world.advance('3d')
  expect(world.attempts('eve@busy.example')).toHaveLength(1)
  expect(world.mailbox('app@us.example').mails()).toEqual([])
})
