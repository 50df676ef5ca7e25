import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/system/clock.ts'
import { openMetrics } from '../../src/telemetry/metrics.ts'

const contrib = (path: string): string => readFileSync(join(import.meta.dirname, '../../contrib', path), 'utf8')

test.each(['grafana/deferd.json', 'prometheus/deferd-alerts.yml'])('every metric that %s asks for exists', async (path) => {
  const metrics = openMetrics({ clock: systemClock, counts: () => [], destinations: () => [], commit: () => Promise.resolve() })
  const known = new Set([...(await metrics.render()).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name ?? ''))
  const asked = contrib(path).match(/\b(?:deferd|nodejs|process)_[a-z0-9_]+/g) ?? []
  expect(asked.length).toBeGreaterThan(5)
  const base = (name: string) => name.replace(/_(?:bucket|sum|count)$/, '')
  expect(asked.filter((name) => !known.has(name) && !known.has(base(name)))).toEqual([])
})

test('the dashboard is JSON with a panel for each thing it shows', () => {
  const { panels } = JSON.parse(contrib('grafana/deferd.json')) as { panels: { id: number }[] }
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
})
