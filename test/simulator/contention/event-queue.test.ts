/** Events are ordered by time, and events of one instant by insertion. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventQueue } from '../../../src/simulator/contention/event-queue.ts'

test('events are returned by time and by insertion, whatever is inserted meanwhile', () => {
  const steps = fc.array(fc.oneof(fc.nat(20), fc.constant('take' as const)), { maxLength: 3000 })
  fc.assert(
    fc.property(steps, (script) => {
      const queue = new EventQueue()
      const waiting: { time: number; event: number }[] = []
      let event = 0
      const take = () => {
        const earliest = waiting.reduce((best, entry) => Math.min(best, entry.time), Infinity)
        const index = waiting.findIndex(({ time }) => time === earliest)
        const [expected] = index < 0 ? [] : waiting.splice(index, 1)
        expect(queue.take()).toBe(expected?.event)
        if (expected !== undefined) expect(queue.now).toBe(expected.time)
      }
      for (const step of script) {
        if (step === 'take') take()
        else {
          waiting.push({ time: step, event })
          queue.put(step, event++)
        }
      }
      while (waiting.length > 0) take()
      expect(queue.size).toBe(0)
      expect(queue.take()).toBeUndefined()
    }),
  )
})

test('grows beyond its initial size', () => {
  const queue = new EventQueue()
  for (let i = 0; i < 5000; i++) queue.put((i * 7919) % 5003, i)
  let last = -1
  for (let event = queue.take(); event !== undefined; event = queue.take()) {
    expect(queue.now).toBeGreaterThan(last)
    last = queue.now
  }
})
