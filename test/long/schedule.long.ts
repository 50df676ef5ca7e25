import { expect, test } from 'vitest'
import { openReaderEngine } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { KillableRelay } from '../support/killable-relay.ts'

test('in real time, against 450 at RCPT: tried at 0, 1, 3, 7, 15, 23 and 30 s, then one notice and an empty queue', async () => {
  const lab = new KillableRelay({ minimal_backoff_time: '1s', maximal_backoff_time: '8s', maximal_queue_lifetime: '30s' })
  try {
    await lab.open(1, () => 'busy-1@far.example')
    await lab.start()
    await lab.acknowledges(1)
    await lab.quiet()
    expect(await lab.drained(60_000)).toBe(true)
    const tried = historyOf(lab)
    const wanted = [0, 1, 3, 7, 15, 23, 30]
    expect(tried).toHaveLength(wanted.length)
    for (const [n, at] of tried.entries()) expect(Math.abs(at - (wanted[n] ?? 0))).toBeLessThan(0.3)
    expect([...lab.far.noticed.keys()]).toEqual([1])
  } finally {
    await lab.close()
  }
})

/** Attempt times of the message, in seconds since its arrival. */
function historyOf({ queueDirectory, acknowledged }: KillableRelay): readonly number[] {
  const reader = openReaderEngine(queueDirectory)
  try {
    const [queueId = ''] = acknowledged.values()
    const story = reader.details(queueId)
    return story?.history.map(({ at }) => (at - story.message.arrivedAt) / 1000) ?? []
  } finally {
    reader.close()
  }
}
