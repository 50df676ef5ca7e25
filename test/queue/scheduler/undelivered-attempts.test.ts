import { expect, test } from 'vitest'
import { countedAttempts } from '../../../src/queue/scheduler/undelivered-attempts.ts'
import { isRefusing } from '../../../src/store/destination-status.ts'
import { QueueWorld } from '../../support/queue-world.ts'

const BUSY = { outcome: 'deferred', status: { status: '4.7.1', reason: 'blocked', reply: '451 4.7.1 blocked', stage: 'rcpt' } } as const
const OK = { outcome: 'delivered', status: { status: '2.0.0', reason: '250 ok', stage: 'end-of-data' } } as const

test('attempts are counted from the last delivery', () => {
  const one = countedAttempts(undefined, [BUSY, BUSY], 5)
  expect(one).toEqual({ count: 2, since: 5, last: BUSY.status })
  expect(countedAttempts(one, [BUSY], 9)).toEqual({ count: 3, since: 5, last: BUSY.status })
  expect(countedAttempts(one, [BUSY, OK], 9)).toBeUndefined()
  expect(countedAttempts(one, [], 9)).toEqual(one)
})

test('a destination that answers and takes no mail is refusing from ten attempts on, until a delivery or until no mail waits', async () => {
  let reply = '451 4.7.1 blocked'
  const world = await QueueWorld.create({ remote: () => ({ kind: 'replies', reply }) })
  try {
    const state = () => world.relay.scheduler.destinations.status('blocked.example')
    for (let n = 0; n < 9; n++) await world.accept([`user${n}@blocked.example`])
    await world.advance(1_000)
    expect(state()).toMatchObject({ state: 'open', undelivered: { count: 9 } })
    expect(world.relay.scheduler.destinations.troubled()).toEqual([])
    await world.accept(['user9@blocked.example'])
    await world.advance(1_000)
    expect(world.relay.scheduler.destinations.troubled()).toMatchObject([
      { destination: 'blocked.example', undelivered: { count: 10, last: { reply } } },
    ])
    expect((await world.relay.status.brief()).destinations.filter(isRefusing)).toHaveLength(1)
    reply = '250 2.0.0 ok'
    await world.accept(['last@blocked.example'])
    await world.advance(1_000)
    expect(state()?.undelivered).toBeUndefined()
  } finally {
    await world.close()
  }
})
