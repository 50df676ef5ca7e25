/** Contract of the store: runs of the schedules, which all nodes share. */
import { expect, test } from 'vitest'
import { NOT_ENDED, KEPT_RUNS, type ScheduleRun } from '../../src/store/records/schedule-run.ts'
import { MIN, T0, type Subject } from './mail.ts'

export const run = (planned: number, more: Partial<ScheduleRun> = {}): ScheduleRun => ({
  name: 'nightly',
  planned,
  orderedBy: null,
  node: 'mx1',
  beganAt: planned,
  until: planned + 2 * MIN,
  ...NOT_ENDED,
  ...more,
})

export function scheduleRuns(subject: () => Subject): void {
  test('a run is begun once, and no second one of its table while it goes on', async () => {
    const { scheduleRuns: runs } = subject().store.records
    expect(await runs.begin(run(T0))).toBe(true)
    expect(await runs.begin(run(T0, { node: 'mx2' }))).toBe(false)
    expect(await runs.begin(run(T0 + MIN, { node: 'mx2' }))).toBe(false)
    expect(await runs.begin(run(T0, { name: 'other' }))).toBe(true)
    expect(await runs.end({ name: 'nightly', planned: T0, endedAt: T0 + 1, outcome: 'done', text: 'copied' })).toBe(true)
    expect(await runs.end({ name: 'nightly', planned: T0, endedAt: T0 + 2, outcome: 'failed', text: 'again' })).toBe(false)
    expect(await runs.extend({ name: 'nightly', planned: T0, until: T0 + 9 * MIN })).toBe(false)
    expect(await runs.begin(run(T0, { node: 'mx2' }))).toBe(false)
    expect(await runs.begin(run(T0 + MIN, { node: 'mx2' }))).toBe(true)
    expect((await runs.unended()).map(({ name, planned }) => [name, planned])).toEqual([
      ['nightly', T0 + MIN],
      ['other', T0],
    ])
  })

  test('the last run of each table, and all of one', async () => {
    const { store, reader } = subject()
    const { scheduleRuns: runs } = store.records
    for (const at of [T0, T0 + MIN]) {
      await runs.begin(run(at))
      await runs.end({ name: 'nightly', planned: at, endedAt: at + 1, outcome: 'done', text: `at ${at}` })
    }
    await runs.begin(run(T0 - MIN, { name: 'by-order', orderedBy: 'ann' }))
    await runs.keepFile({ name: 'nightly', planned: T0, file: '/backups/a.db', identity: '1 2 3' })
    const first = run(T0, { endedAt: T0 + 1, outcome: 'done', text: `at ${T0}`, file: '/backups/a.db', identity: '1 2 3' })
    const second = run(T0 + MIN, { endedAt: T0 + MIN + 1, outcome: 'done', text: `at ${T0 + MIN}` })
    expect(await reader.records.scheduleRuns.of('nightly')).toEqual([first, second])
    expect(await reader.records.scheduleRuns.last()).toEqual([run(T0 - MIN, { name: 'by-order', orderedBy: 'ann' }), second])
    await runs.keepFile({ name: 'nightly', planned: T0, file: null, identity: null })
    expect((await reader.records.scheduleRuns.of('nightly'))[0]).toEqual({ ...first, file: null, identity: null })
  })

  test('the oldest runs are pruned, except those with a file and those that go on', async () => {
    const { scheduleRuns: runs } = subject().store.records
    for (let n = 0; n < KEPT_RUNS + 5; n++) {
      await runs.begin(run(T0 + n))
      await runs.end({ name: 'nightly', planned: T0 + n, endedAt: T0 + n, outcome: 'done', text: '' })
    }
    await runs.keepFile({ name: 'nightly', planned: T0 + 1, file: '/backups/a.db', identity: '1' })
    await runs.begin(run(T0 - 5, { name: 'other' }))
    await runs.prune('nightly')
    const left = (await runs.of('nightly')).map(({ planned }) => planned - T0)
    expect(left).toEqual([1, ...Array.from({ length: KEPT_RUNS }, (_, n) => n + 5)])
    expect(await runs.of('other')).toHaveLength(1)
  })
}
