import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../../../src/system/random.ts'
import { SyncOrder } from '../../../../src/store/sqlite/durability/sync-order.ts'

describe('answers are durable', () => {
  test('when a sync has ended that began after they were written', () => {
    const order = new SyncOrder()
    order.written(3, true)
    const first = order.begin()
    order.written(2, true)
    expect([order.durable, order.needsSync]).toEqual([0, true])
    order.ended(first)
    expect(order.durable).toBe(3)
    order.ended(order.begin())
    expect([order.durable, order.needsSync]).toEqual([5, false])
  })

  test('in their order, also when a later sync ends first', () => {
    const order = new SyncOrder()
    order.written(1, true)
    const first = order.begin()
    order.written(1, true)
    const second = order.begin()
    order.ended(second)
    expect(order.durable).toBe(2)
    order.ended(first)
    expect(order.durable).toBe(2)
  })

  test('at once when they have changed nothing, and nothing before them waits', () => {
    const order = new SyncOrder()
    order.written(4, false)
    expect([order.durable, order.needsSync]).toEqual([4, false])
    order.written(1, true)
    order.written(1, false)
    expect(order.durable).toBe(4)
    order.ended(order.begin())
    expect(order.durable).toBe(6)
  })

  test('never after a failed sync, whatever succeeds then', () => {
    const order = new SyncOrder()
    order.written(1, true)
    const [first, second] = [order.begin(), order.begin()]
    order.written(1, true)
    order.failed()
    order.ended(first)
    order.ended(second)
    order.written(1, false)
    expect([order.durable, order.needsSync]).toEqual([0, false])
  })
})

test('200 random orders of commits and of up to four syncs acknowledge only what a sync includes', () => {
  const chance = seededRandom(38).stream('order')
  for (let run = 0; run < 200; run++) {
    const order = new SyncOrder()
    const running: number[] = []
    let [written, changed, safe, durable] = [0, 0, 0, 0]
    for (let step = 0; step < 60; step++) {
      const kind = chance()
      if (kind < 0.5) {
        const isChange = chance() < 0.7
        const answers = 1 + Math.floor(3 * chance())
        written += answers
        order.written(answers, isChange)
        if (isChange) changed = written
      } else if (kind < 0.75 && running.length < 4) running.push(order.begin())
      else if (running.length > 0) {
        const [ended = 0] = running.splice(Math.floor(chance() * running.length), 1)
        order.ended(ended)
        safe = Math.max(safe, ended)
      }
      durable = safe >= changed ? written : Math.max(durable, safe)
      expect(order.durable).toBe(durable)
    }
  }
})
