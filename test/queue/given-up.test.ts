import { expect, test } from 'vitest'
import { GivenUp } from '../../src/queue/given-up.ts'
import type { DeliveryRequest } from '../../src/queue/message.ts'

const request = (id: number): DeliveryRequest => ({
  message: { id, createdAt: 0, arrivedAt: 0, sender: '', size: 1, body: id, smtputf8: false },
  destination: 'far.example',
  recipients: [],
  fresh: false,
  forcedExpire: true,
})

test('a whole queue that is given up is settled in its order, fifty at a time; what has not begun can be taken back', async () => {
  const settled: number[] = []
  const underWay: PromiseWithResolvers<void>[] = []
  let most = 0
  const givenUp = new GivenUp({
    track: (work) => void work,
    settle: async ({ message }) => {
      const end = Promise.withResolvers<void>()
      most = Math.max(most, underWay.push(end))
      await end.promise
      settled.push(message.id)
    },
  })
  const endOne = async () => {
    underWay.shift()?.resolve()
    await new Promise((resolve) => setImmediate(resolve))
  }
  for (let id = 1; id <= 200; id++) givenUp.add(request(id))
  for (let n = 0; n < 100; n++) await endOne()
  expect(settled).toEqual(Array.from({ length: 100 }, (_, n) => n + 1))
  expect(most).toBe(50)
  expect(givenUp.drain().map(({ message }) => message.id)).toEqual(Array.from({ length: 50 }, (_, n) => n + 151))
  for (let n = 0; n < 60; n++) await endOne()
  expect(settled).toHaveLength(150)
})
