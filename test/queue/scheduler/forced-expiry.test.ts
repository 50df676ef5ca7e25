import { expect, test } from 'vitest'
import { ForcedExpiry } from '../../../src/queue/scheduler/forced-expiry.ts'
import { TaskSet } from '../../../src/system/task-set.ts'
import type { DeliveryRequest } from '../../../src/mail/message.ts'

const request = (id: number): DeliveryRequest => ({
  lease: { owner: 1, until: Infinity },
  message: { id, createdAt: 0, arrivedAt: 0, sender: '', size: 1, contentId: id, smtputf8: false },
  destination: 'far.example',
  recipients: [],
  fresh: false,
  forcedExpire: true,
})

test('a force-expired queue is settled in order, fifty at a time; what has not started can be withdrawn', async () => {
  const settled: number[] = []
  const underWay: PromiseWithResolvers<void>[] = []
  let most = 0
  const tasks = new TaskSet((error) => {
    throw error
  })
  const expiry = new ForcedExpiry(tasks, async ({ message }) => {
    const end = Promise.withResolvers<void>()
    most = Math.max(most, underWay.push(end))
    await end.promise
    settled.push(message.id)
  })
  const endOne = async () => {
    underWay.shift()?.resolve()
    await new Promise((resolve) => setImmediate(resolve))
  }
  for (let id = 1; id <= 200; id++) expiry.add(request(id))
  for (let n = 0; n < 100; n++) await endOne()
  expect(settled).toEqual(Array.from({ length: 100 }, (_, n) => n + 1))
  expect(most).toBe(50)
  expect(expiry.drain().map(({ message }) => message.id)).toEqual(Array.from({ length: 50 }, (_, n) => n + 151))
  for (let n = 0; n < 60; n++) await endOne()
  expect(settled).toHaveLength(150)
})
