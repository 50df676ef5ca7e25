import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { realClock } from '../support/real-clock.ts'
import { EMPTY_TALLY } from '../../src/store/counts/queue-tally.ts'
import { openMetrics } from '../../src/telemetry/metrics/metrics.ts'

const CONTRIB = join(import.meta.dirname, '../../contrib')

const contrib = (path: string): string => readFileSync(join(CONTRIB, path), 'utf8')

const metrics = openMetrics({
  clock: realClock,
  tally: async () => EMPTY_TALLY,
  destinations: () => [],
})

async function metricNames(): Promise<ReadonlySet<string>> {
  return new Set([...(await metrics.render()).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name ?? ''))
}

test.each(['grafana/deferd.json', 'prometheus/deferd-alerts.yml'])('every metric in %s exists', async (path) => {
  const known = await metricNames()
  const asked = contrib(path).match(/\b(?:deferd|nodejs|process)_[a-z0-9_]+/g) ?? []
  expect(asked.length).toBeGreaterThan(5)
  const base = (name: string) => name.replace(/_(?:bucket|sum|count)$/, '')
  expect(asked.filter((name) => !known.has(name) && !known.has(base(name)))).toEqual([])
})

test.each(['grafana/deferd.json', 'prometheus/deferd-alerts.yml'])('every label that %s selects or shows exists', (path) => {
  const labelsOf = new Map(metrics.texts.map(({ name, labels }) => [name, labels]))
  const content = contrib(path).replaceAll('\\"', '"')
  const selected = [...content.matchAll(/\b(deferd_\w+?)(?:_(?:bucket|sum|count))?\{([^}]*)\}/g)].flatMap(([, name = '', selectors = '']) =>
    [...selectors.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => ({ name, label })),
  )
  expect(selected.length).toBeGreaterThan(1)
  expect(selected.filter(({ name, label }) => !['job', 'instance', ...(labelsOf.get(name) ?? [])].includes(label))).toEqual([])
  const known = new Set(['job', 'instance', 'le', ...metrics.texts.flatMap(({ labels }) => labels)])
  const shown = [...content.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label)
  expect(shown.filter((label) => !known.has(label))).toEqual([])
})

test('the dashboard is JSON with its panels', () => {
  const { panels } = JSON.parse(contrib('grafana/deferd.json')) as { panels: { id: number }[] }
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
})

test('every alert has tests that fire it, and tests that do not', () => {
  const alerts = [...contrib('prometheus/deferd-alerts.yml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name ?? '')
  expect(alerts.length).toBeGreaterThan(10)
  const cases = contrib('prometheus/deferd-alerts.test.yml')
  const silent = new Set([...cases.matchAll(/- \{ eval_time: \w+, alertname: (\w+) \}/g)].map(([, name]) => name))
  const fired = new Set([...cases.matchAll(/- eval_time: \w+\n\s+alertname: (\w+)\n\s+exp_alerts:/g)].map(([, name]) => name))
  expect(alerts.filter((name) => !silent.has(name) || !fired.has(name))).toEqual([])
})

test('the alerts pass their tests in promtool', () => {
  const { error, status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', join(CONTRIB, 'prometheus/deferd-alerts.test.yml')], {
    encoding: 'utf8',
  })
  if (error !== undefined) {
    process.stderr.write('promtool is not installed (apt install prometheus), so the alerts were not evaluated\n')
    return expect(error).toMatchObject({ code: 'ENOENT' })
  }
  return expect({ status, output: stdout + stderr }).toMatchObject({ status: 0 })
})
