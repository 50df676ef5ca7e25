/** Answers of the API after the wall clock was set: the same as without the step, with all times of the wall clock. */
import { expect, test } from 'vitest'
import { DAY, MINUTE, type Duration } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { shiftedTimes } from '../support/shifted-times.ts'

const STEP: Duration = 10 * 365 * DAY

async function answersAfter(
  step: Duration,
): Promise<{ readonly answers: readonly string[]; readonly suspendedUntil: readonly (number | null)[] }> {
  const world = await ApiWorld.open('memory')
  try {
    const { api, queue } = world
    const [id = ''] = await world.fill(2)
    await queue.accept(['eve@ok.example'])
    await queue.advance(20 * MINUTE)
    queue.clock.step(step)
    const until = (queue.clock.now() + DAY) / 1000
    const ordered = { as: 'admin', headers: { 'x-request-id': 'held' } }
    await api.post('/destinations/held.example/suspend', { reason: 'maintenance', until }, ordered)
    for (const older_than of ['30m', '10m'])
      await api.post('/operations', { operation: 'hold', selection: { kind: 'filter', filter: { older_than } } }, ordered)
    const paths = ['/now', '/series?since=1h', '/messages', '/messages?older_than=30m', '/messages?younger_than=30m', `/messages/${id}`]
    const others = [
      '/destinations',
      '/destinations/a.example.org',
      '/destinations/a.example.org/causes',
      '/history',
      '/audit?since=1h',
      '/tokens',
    ]
    const answers: string[] = []
    for (const path of [...paths, ...others]) {
      const { status, text } = await api.get(path, { as: 'admin' })
      answers.push(`${status} ${path} ${text}`)
    }
    return { answers, suspendedUntil: queue.happened('suspended').map(({ until: end }) => end) }
  } finally {
    await world.close()
  }
}

test('after the wall clock was set, every resource has times of the wall clock', async () => {
  const plain = await answersAfter(0)
  const stepped = await answersAfter(STEP)
  expect(plain.answers.filter((text) => !text.startsWith('200 '))).toEqual([])
  expect(stepped.answers).toEqual(plain.answers.map((text) => shiftedTimes(text, STEP, 2026)))
  expect(plain.suspendedUntil).toHaveLength(1)
  expect(stepped.suspendedUntil).toEqual(plain.suspendedUntil.map((until) => (until ?? 0) + STEP))
})
