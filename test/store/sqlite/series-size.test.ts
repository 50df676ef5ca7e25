import { expect, test } from 'vitest'
import { openCore } from '../../../src/store/sqlite/core/open-core.ts'
import { SERIES_YEAR_BYTES } from '../../../src/store/records/series.ts'
import { DAY, HOUR, MINUTE } from '../../../src/system/clock.ts'

/** Part of a year that is filled. */
const PART = 40
const NAMED = ['destination', 'provider', 'sender_domain', 'node']
/** The names that are kept of a day, and their sum of others; buckets of delays. */
const [NAMES, CAUSES, DELAYS] = [51, 21, 25]

test('a year of series with all names in each hour has the stated size at most', () => {
  const { db } = openCore(null, { inThread: false })
  const size = (): number =>
    db.prepare<[], number>('select page_count * page_size from pragma_page_count, pragma_page_size').pluck().get() ?? 0
  const before = size()
  const add = db.prepare('insert or ignore into series values (?, ?, ?, 1000, 1000, 1000, 1000, 1000)')
  const fill = (dimension: string, names: number, times: { readonly count: number; readonly step: number }): void => {
    for (let n = 0; n < times.count / PART; n++)
      for (let name = 0; name < names; name++)
        add.run(dimension, 1_800_000_000_000 + n * times.step, name === 0 ? '' : `host${name}.of-a-long-domain.example`)
  }
  const year = { count: (365 * DAY) / HOUR, step: HOUR }
  const week = { count: (7 * DAY) / MINUTE, step: MINUTE + 1 }
  db.transaction(() => {
    for (const dimension of NAMED) fill(dimension, NAMES, year)
    fill('cause', CAUSES, year)
    fill('delay', DELAYS, year)
    fill('cause', CAUSES, week)
    fill('delay', DELAYS, week)
  })()
  const backlog = db.prepare('insert into backlog values (?, 1000, 1000, 100000, 1000, 1000, 100000000)')
  db.transaction(() => {
    for (let n = 0; n < (year.count + week.count) / PART; n++) backlog.run(1_800_000_000_000 + n * MINUTE)
  })()
  const filled = (size() - before) * PART
  expect(filled).toBeLessThan(SERIES_YEAR_BYTES)
  expect(filled).toBeGreaterThan(SERIES_YEAR_BYTES / 2)
  db.close()
})
