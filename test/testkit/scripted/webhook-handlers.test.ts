/** Handlers of an application in a world: they run in real time, while the clock of the world stands. */
import { setTimeout as realTime } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { expect, test, vi } from 'vitest'
import { createWorld } from '../../../src/testkit/index.ts'
import type { World } from '../../../src/testkit/world.ts'

const send = (world: World, to = 'ann@there.example') =>
  createTransport(world.transport()).sendMail({ from: 'app@us.example', to, text: 'hi' })

/** A value that the types of the test kit refuse, as a caller in JavaScript would pass it. */
const untyped = (value: unknown) => value as never

test('the clock stands while a handler works, without a busy processor', async () => {
  await using world = await createWorld()
  const hook = await world.webhook('app', {
    types: ['recipient.delivered'],
    handler: async () => {
      await realTime(300)
      return 200
    },
  })
  await send(world, 'ann@there.example')
  await send(world, 'bob@there.example')
  const before = process.cpuUsage()
  await world.advance('2h')
  const { user } = process.cpuUsage(before)
  expect(hook.requests().map(({ at, status }) => [at, status])).toEqual([
    [0, 200],
    [0, 200],
  ])
  expect(user / 1000).toBeLessThan(400)
})

test('settle ends after the handlers have answered', async () => {
  await using world = await createWorld()
  world.destination('there.example').greylists('5m')
  const hook = await world.webhook('app', {
    types: ['recipient.delivered'],
    destinations: ['there.example'],
    handler: async () => {
      await realTime(100)
      await send(world, 'bob@here.example')
      return 200
    },
  })
  await send(world)
  await world.settle()
  expect(hook.requests().map(({ at, status }) => [at, status])[0]).toEqual([300, 200])
  expect(world.mailbox('bob@here.example').mails().length).toBeGreaterThan(0)
})

test.each(['in an advance', 'beside it'])('a world closes within 2 s while a handler does not answer, %s', async (where) => {
  const world = await createWorld()
  const began = Promise.withResolvers<void>()
  await world.webhook('app', {
    types: ['message.accepted'],
    handler: () => {
      began.resolve()
      return new Promise<number>(() => undefined)
    },
  })
  await send(world)
  const advance = where === 'beside it' ? Promise.resolve() : world.advance('1h')
  await began.promise
  const before = performance.now()
  await world.close()
  // 2 s on an idle machine.
  expect(performance.now() - before).toBeLessThan(20_000)
  await advance
})

test('a crash ends the request of a handler that does not answer', async () => {
  await using world = await createWorld()
  let calls = 0
  const hook = await world.webhook('app', {
    types: ['message.accepted'],
    handler: () => (calls++ === 0 ? new Promise<number>(() => undefined) : 200),
  })
  await send(world)
  await vi.waitFor(() => expect(calls).toBe(1), { timeout: 30_000 })
  await world.crash({ downFor: '10m' })
  await world.advance('10m')
  expect(
    hook
      .requests()
      .map(({ at, status }) => [at, status])
      .at(-1),
  ).toEqual([600, 200])
})

test('a handler that sends mail gets its answer', async () => {
  await using world = await createWorld()
  await world.webhook('app', {
    types: ['recipient.bounced'],
    handler: async () => {
      await send(world, 'operator@us.example')
      return 204
    },
  })
  world.destination('there.example').rejects('ann@there.example')
  await send(world)
  await world.settle()
  await world.settle()
  expect(world.mailbox('operator@us.example').mails()).toHaveLength(1)
})

test('the failure of a handler is a 500, and rejects the call that advances the clock', async () => {
  const world = await createWorld()
  let failures = 2
  const hook = await world.webhook('app', {
    types: ['recipient.delivered'],
    handler: async () => {
      if (failures-- > 0) throw new Error('an expectation of the test')
      return 200
    },
  })
  await send(world)
  await expect(world.advance('1s')).rejects.toThrow('an expectation of the test')
  await expect(world.advance('5m')).rejects.toThrow('an expectation of the test')
  await world.advance('30m')
  expect(hook.requests().map(({ status }) => status)).toEqual([500, 500, 200])
  await world.close()
})

test('a failure after the last call rejects the next one, close included', async () => {
  const world = await createWorld()
  const hook = await world.webhook('app', {
    types: ['message.accepted'],
    handler: () => {
      throw new Error('at the end')
    },
  })
  await send(world)
  await vi.waitFor(() => expect(hook.requests()).toHaveLength(1), { timeout: 30_000 })
  await expect(world.close()).rejects.toThrow('at the end')
  await world.close()
})

test.each([
  [undefined, 'undefined'],
  [99, '99'],
  ['200', '"200"'],
])('a handler that returns %s is told what a status is', async (returned, shown) => {
  await using world = await createWorld()
  const hook = await world.webhook('app', { types: ['recipient.delivered'], handler: () => untyped(returned) })
  await send(world)
  await expect(world.advance('1s')).rejects.toThrow(`the handler of webhook app returned ${shown}; expected a status such as 200`)
  expect(hook.requests()[0]?.status).toBe(500)
})

test('a handler that would advance the clock is refused, since the clock waits for it', async () => {
  await using world = await createWorld()
  await world.webhook('app', {
    types: ['recipient.delivered'],
    handler: async () => {
      await world.advance('1m')
      return 200
    },
  })
  await send(world)
  await expect(world.advance('1s')).rejects.toThrow('a handler of a webhook cannot advance the clock')
})

test('a handler that is no function is refused', async () => {
  await using world = await createWorld()
  await expect(world.webhook('app', { handler: untyped(5) })).rejects.toThrow(new TypeError('handler of webhook expects a function, got 5'))
})
