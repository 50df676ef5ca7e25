import { expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND, sleep } from '../../../src/system/clock.ts'
import { eventLoopTurn } from '../../../src/system/event-loop.ts'
import { TimeDriver, type Busy } from '../../../src/testkit/virtual/time-driver.ts'
import { BEGINNING, VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

function setUp() {
  const clock = new VirtualClock()
  const port = { inFlight: 0, activity: 0 }
  return { clock, port, driver: new TimeDriver(clock, { store: port satisfies Busy }) }
}

test('everything due up to and including the instant runs, with what it starts at that instant', async () => {
  const { clock, driver } = setUp()
  const story: string[] = []
  const live = async () => {
    for (;;) {
      await sleep(clock, HOUR)
      story.push(`hour ${(clock.now() - BEGINNING) / HOUR}`)
      await Promise.resolve()
      clock.after(0, () => story.push('what follows'))
    }
  }
  void live()
  await driver.runUntil(BEGINNING + 2 * HOUR)
  expect(story).toEqual(['hour 1', 'what follows', 'hour 2', 'what follows'])
  expect(clock.now()).toBe(BEGINNING + 2 * HOUR)
})

test('time does not advance while a call is in flight or events are pending', async () => {
  const { clock, port, driver } = setUp()
  const seen: number[] = []
  const work = async () => {
    port.inFlight++
    for (let i = 0; i < 20; i++) await eventLoopTurn()
    port.inFlight--
    port.activity++
    for (let i = 0; i < 20; i++) {
      await eventLoopTurn()
      port.activity++
    }
    seen.push(clock.now() - BEGINNING)
    clock.after(SECOND, () => seen.push(clock.now() - BEGINNING))
  }
  clock.after(MINUTE, () => void work())
  clock.after(2 * MINUTE, () => seen.push(clock.now() - BEGINNING))
  await driver.runUntil(BEGINNING + HOUR)
  expect(seen).toEqual([MINUTE, MINUTE + SECOND, 2 * MINUTE])
})

test('time advances while a condition is unmet, and no further', async () => {
  const { clock, driver } = setUp()
  let left = 3
  const tick = () => void (--left > 0 && clock.after(DAY, tick))
  clock.after(DAY, tick)
  clock.after(300 * DAY, () => undefined)
  expect(await driver.runWhile(() => left > 0)).toBe(true)
  expect(clock.now()).toBe(BEGINNING + 3 * DAY)
})

test('a condition that cannot be met ends the wait', async () => {
  const { driver } = setUp()
  expect(await driver.runWhile(() => true)).toBe(false)
})

test('concurrent callers take turns', async () => {
  const { clock, driver } = setUp()
  const both = [driver.runUntil(BEGINNING + HOUR).then(() => clock.now()), driver.runUntil(BEGINNING + 2 * HOUR).then(() => clock.now())]
  expect(await Promise.all(both)).toEqual([BEGINNING + HOUR, BEGINNING + 2 * HOUR])
})

test('an error reaches the caller that advanced time, and the next caller can continue', async () => {
  const { clock, driver } = setUp()
  clock.after(SECOND, () => {
    throw new Error('a bug')
  })
  await expect(driver.runUntil(BEGINNING + MINUTE)).rejects.toThrow('a bug')
  await driver.runUntil(BEGINNING + MINUTE)
  expect(clock.now()).toBe(BEGINNING + MINUTE)
})

test('a wall clock set past the instant is accepted', async () => {
  const { clock, driver } = setUp()
  clock.after(SECOND, () => clock.step(HOUR))
  await driver.runUntil(BEGINNING + MINUTE)
  expect(clock.now()).toBe(BEGINNING + HOUR + SECOND)
})
