import { expect, test } from 'vitest'
import { watchAccess } from '../../../src/daemon/node/access-watch.ts'
import { SECOND } from '../../../src/system/clock.ts'
import { TimeDriver } from '../../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

/** A watch whose reads the test ends. */
function watched() {
  const clock = new VirtualClock()
  const driver = new TimeDriver(clock, {})
  const reads: PromiseWithResolvers<void>[] = []
  const failures: string[] = []
  const load = (): Promise<void> => {
    const read = Promise.withResolvers<void>()
    reads.push(read)
    return read.promise
  }
  const watch = watchAccess(clock, load, (why) => failures.push(why))
  return { watch, reads, failures, advance: (by: number) => driver.runUntil(clock.now() + by) }
}

test('the entries are read every 5 s, also after a failure', async () => {
  const { reads, failures, advance } = watched()
  await advance(5 * SECOND)
  reads[0]?.reject(new Error('the database is away'))
  await advance(5 * SECOND)
  expect([reads.length, failures]).toEqual([2, ['the database is away']])
})

test('a watch that stops while the entries are being read does not read them again', async () => {
  for (const ends of ['resolve', 'reject'] as const) {
    const { watch, reads, failures, advance } = watched()
    await advance(5 * SECOND)
    const stopped = watch.stop()
    reads[0]?.[ends]()
    await advance(60 * SECOND)
    await stopped
    expect([reads.length, failures]).toEqual([1, []])
  }
})
