import { expect, test } from 'vitest'
import { queueIdOf } from '../../src/queue/message.ts'
import { openQueueReader } from '../../src/queue/sqlite/queue-reader.ts'
import { CrashLab } from '../support/crash-lab.ts'

/** Every live recipient with what a restart must keep. */
function schedule(directory: string) {
  const reader = openQueueReader(directory)
  try {
    const listed = reader.list({}, { after: 0, limit: 10_000, now: Date.now() })
    return listed.flatMap(({ message }) =>
      (reader.story(queueIdOf(message), Date.now())?.recipients ?? []).map(({ id, state, dueAt, expiresAt, steps, attempts, starts }) => ({
        id,
        state,
        dueAt,
        expiresAt,
        steps,
        attempts,
        starts,
      })),
    )
  } finally {
    reader.close()
  }
}

test('after SIGKILL and a restart due times differ by 0 ms and attempts by 0', { timeout: 60_000 }, async () => {
  const lab = new CrashLab({ minimal_backoff_time: '1h', maximal_backoff_time: '2h' })
  try {
    await lab.open(4, (number) => `defer-${number}@far.example`)
    await lab.start()
    await lab.acknowledges(300)
    await lab.quiet()
    await lab.settled((recipients) => recipients.every(({ state }) => state === 'waiting'))
    const before = schedule(lab.queueDirectory)
    expect(before.length).toBeGreaterThanOrEqual(300)
    expect(before.every(({ attempts, steps, starts }) => attempts === 1 && steps === 1 && starts === 0)).toBe(true)
    for (let kill = 0; kill < 3; kill++) {
      await lab.die(0)
      expect(schedule(lab.queueDirectory)).toEqual(before)
      await lab.start()
      expect(schedule(lab.queueDirectory)).toEqual(before)
    }
  } finally {
    await lab.close()
  }
})
