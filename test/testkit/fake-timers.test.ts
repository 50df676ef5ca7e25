/** Default fake timers of vitest before and after the creation of a world. */
import { createTransport } from 'nodemailer'
import { afterEach, expect, test, vi } from 'vitest'
import { createWorld, type World } from '../../src/testkit/index.ts'

afterEach(() => {
  vi.useRealTimers()
})

async function mailIsDelivered(world: World): Promise<void> {
  world.destination('slow.example').greylists('5m')
  await createTransport(world.transport()).sendMail({ from: 'app@us.example', to: 'ann@slow.example', text: 'hi' })
  await world.advance('1h')
  expect(world.recipient('ann@slow.example').attemptedAt).toEqual([0, 300])
  await world.settle()
}

test('fake timers are installed before the world', async () => {
  vi.useFakeTimers()
  await using world = await createWorld()
  await mailIsDelivered(world)
})

test('fake timers are installed after the world', async () => {
  await using world = await createWorld()
  vi.useFakeTimers()
  await mailIsDelivered(world)
})

test('an SQLite queue and queueMicrotask replaced too, as jest does', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setImmediate', 'setInterval', 'Date', 'performance', 'queueMicrotask'] })
  await using world = await createWorld({ store: 'sqlite' })
  await mailIsDelivered(world)
})

test('fake timers remain fake after the world, and real timers return as they were', async () => {
  const { setImmediate: real, queueMicrotask: microtask } = globalThis
  vi.useFakeTimers()
  const one = await createWorld()
  const other = await createWorld()
  expect(globalThis.setImmediate).toBe(real)
  expect(setTimeout).toHaveProperty('clock')
  await one.close()
  expect(globalThis.setImmediate).toBe(real)
  await other.close()
  expect(globalThis.setImmediate).toHaveProperty('clock')
  vi.useRealTimers()
  expect(Object.getOwnPropertyDescriptor(globalThis, 'setImmediate')).toHaveProperty('value', real)
  expect(globalThis.queueMicrotask).toBe(microtask)
})

test('fake timers remain fake after code that saves the function and assigns it again, as the reporter of vitest does', async () => {
  vi.useFakeTimers()
  const fake = globalThis.setImmediate
  const world = await createWorld()
  const saved = globalThis.setImmediate
  globalThis.setImmediate = saved
  await world.close()
  expect(globalThis.setImmediate).toBe(fake)
})
