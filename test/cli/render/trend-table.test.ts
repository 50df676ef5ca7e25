import { expect, test } from 'vitest'
import { trendText } from '../../../src/cli/render/trend-table.ts'
import type { SeriesJson } from '../../../src/resources/series-json.ts'

const seriesOf = (...series: SeriesJson['series']): SeriesJson => ({
  metric: 'flow',
  unit: '',
  from: 1_795_910_400,
  to: 1_795_953_600,
  step: 21_600,
  series,
  marks: [{ time: 1_795_915_800, kind: 'suspended', text: 'far.example', node: 'mx1' }],
  known_since: null,
  as_of: 1_795_953_600,
})

test('the queue over time on a terminal of 80 columns', () => {
  const flow = { accepted: [1_200, 30], delivered: [900, 40], deferred: [300, 5_000], bounced: [0, 2] }
  const trend = {
    flow: seriesOf({ name: null, values: flow }),
    backlog: seriesOf({ name: null, values: { incoming: [0, null], active: [1, null], deferred: [300, null], hold: [0, null] } }),
    delay: seriesOf({ name: null, values: { p95: [null, 2_460] } }),
    causes: seriesOf({ name: '421 4.7.28', values: { deferred: [200, 5_000] } }, { name: '', values: { deferred: [100, 0] } }),
  }
  const display = { width: 80, coloured: false }
  expect(trendText(trend, { clock: { zone: () => ({ offset: 0, name: 'UTC' }) }, display })).toMatchInlineSnapshot(`
    "At most 301 recipients waited, last counted 6h ago. Delivered: 940; deferred:
    5,300; bounced: 2.

    FROM             accepted delivered deferred bounced waiting p95
    2026-11-29 00:00    1,200       900      300       0     301   -
    2026-11-29 06:00       30        40    5,000       2       - 41m

    CAUSE        deferred
    421 4.7.28      5,200
    other causes      100

    MARKS
    2026-11-29 01:30  mx1  suspended: far.example
    "
  `)
})
