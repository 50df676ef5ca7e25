import { expect, test } from 'vitest'
import { queueIdOf } from '../../src/mail/message.ts'
import { openReaderEngine } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { KillableRelay } from '../support/killable-relay.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'

/** Every live recipient, with the members that a restart must keep. */
function schedule(directory: string) {
  const reader = openReaderEngine(directory)
  try {
    const listed = reader.list(ANY_MESSAGE, { after: 0, limit: 10_000 })
    return listed.flatMap(({ message }) =>
      (reader.details(queueIdOf(message))?.recipients ?? []).map(({ id, state, dueAt, expiresAt, steps, attempts, deliveryStarts }) => ({
        id,
        state,
        dueAt,
        expiresAt,
        steps,
        attempts,
        deliveryStarts,
      })),
    )
  } finally {
    reader.close()
  }
}

test('after SIGKILL and a restart due times and attempts are unchanged', async () => {
  const lab = new KillableRelay({ minimal_backoff_time: '1h', maximal_backoff_time: '2h' })
  try {
    await lab.open(4, (number) => `defer-${number}@far.example`)
    await lab.start()
    await lab.acknowledges(300)
    await lab.quiet()
    await lab.settled((recipients) => recipients.every(({ state }) => state === 'waiting'))
    const before = schedule(lab.queueDirectory)
    expect(before.length).toBeGreaterThanOrEqual(300)
    expect(before.every(({ attempts, steps, deliveryStarts }) => attempts === 1 && steps === 1 && deliveryStarts === 0)).toBe(true)
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
