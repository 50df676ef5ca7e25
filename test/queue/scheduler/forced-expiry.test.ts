import { expect, test } from 'vitest'
import { DestinationPolicies } from '../../../src/config/destination-policies.ts'
import { defaultConfig } from '../../../src/config/load.ts'
import { ActiveQueue, type ActiveLimits } from '../../../src/queue/scheduler/active-queue.ts'
import { DestinationTable } from '../../../src/queue/scheduler/destination-table.ts'
import { ForcedExpiry } from '../../../src/queue/scheduler/forced-expiry.ts'
import { TaskSet } from '../../../src/system/task-set.ts'
import type { DeliveryRequest } from '../../../src/mail/message.ts'

const policies = new DestinationPolicies(defaultConfig('relay.example').config)
const LIMITS: ActiveLimits = {
  deliveries: 100,
  messages: 1_000,
  recipients: 1_000,
  slots: { cost: 5, loan: 3, discount: 50, minimum: 3 },
  transportDelay: 0,
}

const request = (id: number): DeliveryRequest => ({
  lease: { owner: 1, until: Infinity },
  message: { id, createdAt: 0, arrivedAt: 0, sender: '', size: 1, contentId: id, smtputf8: false },
  destination: 'far.example',
  recipients: [],
  fresh: false,
  forcedExpire: true,
})

test('a force-expired queue is settled in order, fifty at a time; what has not started can be given back', async () => {
  const settled: number[] = []
  const left: number[] = []
  const returned: number[] = []
  const underWay: PromiseWithResolvers<void>[] = []
  let most = 0
  const tasks = new TaskSet((error) => {
    throw error
  })
  const limits = () => LIMITS
  const active = new ActiveQueue(limits)
  const state = { active, table: new DestinationTable(active, limits, () => policies), tasks }
  const expiry = new ForcedExpiry(state, {
    settlements: {
      expired: async ({ message }) => {
        const end = Promise.withResolvers<void>()
        most = Math.max(most, underWay.push(end))
        await end.promise
        settled.push(message.id)
      },
    },
    giveBack: { requests: async (_, requests) => void returned.push(...requests.map(({ message }) => message.id)) },
    scheduler: { left: ({ id }) => left.push(id) },
  })
  const endOne = async () => {
    underWay.shift()?.resolve()
    await new Promise((resolve) => setImmediate(resolve))
  }
  for (let id = 1; id <= 200; id++) {
    active.reserve(id, 0)
    expiry.add(request(id))
  }
  for (let n = 0; n < 100; n++) await endOne()
  expect(settled).toEqual(Array.from({ length: 100 }, (_, n) => n + 1))
  expect(most).toBe(50)
  void expiry.giveBack(({ message }) => message.id > 190)
  expect(returned).toEqual(Array.from({ length: 10 }, (_, n) => n + 191))
  void expiry.giveBack()
  expect(returned.slice(10)).toEqual(Array.from({ length: 40 }, (_, n) => n + 151))
  for (let n = 0; n < 60; n++) await endOne()
  expect(left).toEqual(settled)
  expect(settled).toHaveLength(150)
  expect(active.roomForMessages).toBe(LIMITS.messages)
})
