/** The pages: one small file each, without external resources, with all input escaped. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import vm from 'node:vm'
import { afterAll, describe, expect, test } from 'vitest'
import { compileAlone } from '../../../src/backoff/retry-policy.ts'
import { CLIENTS, runClient } from '../../../src/simulator/contention/clients.ts'
import { MODELS, type ModelName, runModel } from '../../../src/simulator/contention/models.ts'
import { contentionPage, modelPage } from '../../../src/simulator/pages/contention-page.ts'
import { type Page, renderPage } from '../../../src/simulator/pages/page.ts'
import type { Plot } from '../../../src/simulator/pages/plot.ts'
import { planOf } from '../../../src/planner/plan.ts'
import { schedulePage } from '../../../src/simulator/pages/schedule-page.ts'
import { days } from '../../../src/system/clock.ts'
import { simulate } from '../../support/simulate-command.ts'

const folder = mkdtempSync(join(tmpdir(), 'deferd-pages-'))
afterAll(() => rmSync(folder, { recursive: true }))

const plan = (name: string) => planOf({ name, schedule: { policy: compileAlone(name), lifetime: days(5) }, warnings: [] })
const table: Page['table'] = { headings: ['a'], rows: [['b']] }

interface Chart {
  readonly type: string
  readonly data: {
    readonly datasets: readonly { readonly label: string; readonly data: readonly { x: number; y: number }[]; borderColor: string }[]
  }
  readonly options: { readonly color: string }
}

/** Runs the scripts of a page with a fake browser. Returns the drawn charts, and a function that changes the colour scheme. */
function open(html: string): { charts: Chart[]; destroyed: () => number; change: () => void } {
  const scripts = [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, source]) => source ?? '')
  const charts: Chart[] = []
  let destroyed = 0
  let change = (): void => {}
  class FakeChart {
    constructor(canvas: unknown, configuration: Chart) {
      expect(canvas).toMatch(/^plot-\d+$/)
      charts.push(configuration)
    }
    destroy(): void {
      destroyed++
    }
  }
  const browser = {
    getComputedStyle: () => ({ getPropertyValue: (name: string) => `value of ${name}` }),
    matchMedia: () => ({ addEventListener: (_: string, listener: () => void) => (change = listener) }),
    document: { documentElement: {}, getElementById: (id: string) => (html.includes(`<canvas id="${id}"`) ? id : null) },
  }
  vm.runInNewContext(scripts.at(-1) ?? '', { window: browser, Chart: FakeChart })
  return { charts, destroyed: () => destroyed, change: () => change() }
}

const points = (plot: Plot | undefined): number => (plot?.series ?? []).reduce((sum, { points: all }) => sum + all.length, 0)

describe('a page', () => {
  const page = schedulePage([plan('doubling'), plan('kumomta'), plan('fixed(1s)')], table, 'deferd simulate schedule')
  const html = renderPage(page)

  test('draws every plot, and again when the colour scheme changes', () => {
    const { charts, destroyed, change } = open(html)
    expect(charts.map(({ type }) => type)).toEqual(['scatter', 'line', 'line'])
    expect(charts[0]?.data.datasets.map(({ label }) => label)).toEqual(['doubling', 'kumomta', 'fixed(1s)'])
    expect(charts[0]?.options.color).toBe('value of --ink')
    change()
    expect(charts).toHaveLength(6)
    expect(destroyed()).toBe(3)
  })

  test('is smaller than a megabyte for any policy', () => {
    expect(points(page.plots[0])).toBeLessThan(1600)
    expect(html.length).toBeLessThan(1_000_000)
  })

  test('loads nothing from the network', () => {
    const withoutScripts = html.replace(/<script>[\s\S]*?<\/script>/g, '')
    expect(withoutScripts).not.toMatch(/(src|href)="(?!data:)/)
    expect(withoutScripts).toContain("default-src 'none'")
    expect(html).toContain('Chart.js v4')
    expect(html).not.toContain('sourceMappingURL')
  })

  test('escapes the operator’s text', () => {
    const name = '</script><img src=x onerror=alert(1)>&"'
    const hostile = renderPage({
      ...page,
      title: name,
      table: { headings: [name], rows: [[name]] },
      command: name,
      plots: page.plots.map((plot) => ({ ...plot, title: name, series: [{ name, points: [[1, 2]] }] })),
    })
    expect(hostile).not.toContain('<img')
    expect(open(hostile).charts[0]?.data.datasets[0]?.label).toBe(name)
  })
})

test('each client has a curve, also one that collapsed', () => {
  const runs = Object.keys(CLIENTS).map((client) => ({ client, result: runClient({ client, seed: 1, requests: 2000, maxBusy: 50 }) }))
  const page = contentionPage(runs, 2000, table, 'x')
  expect(page.plots.map(({ title }) => title)).toEqual(['Work done', 'Open connections', 'Windows', 'Attempts'])
  expect(page.plots[0]?.series.map(({ name }) => name)).toEqual(Object.keys(CLIENTS))
  expect(renderPage(page).length).toBeLessThan(1_000_000)
})

test('there is no plot of windows for clients without one', () => {
  const runs = [{ client: 'backoff', result: runClient({ client: 'backoff', seed: 1, requests: 200, maxBusy: 50 }) }]
  expect(contentionPage(runs, 200, table, 'x').plots.map(({ title }) => title)).not.toContain('Windows')
})

test('the other models have one plot each', () => {
  for (const model of Object.keys(MODELS) as ModelName[]) {
    const results = runModel(model, { seed: 1, runs: 1 })
    const { plots } = modelPage(model, results, table, 'x')
    expect(plots).toHaveLength(1)
    expect(points(plots[0]), model).toBe(results.length)
  }
})

test('--html writes the page, with the command that reproduces it', async () => {
  const path = join(folder, 'plan.html')
  const run = await simulate([
    'schedule',
    '--policy',
    'doubling',
    '--policy',
    'thain(T=5m)',
    '-o',
    'maximal_queue_lifetime=1d',
    '--html',
    path,
  ])
  expect(run).toMatchObject({ exitCode: null, err: '' })
  expect(run.out).toContain('an outage of 12h')
  expect(readFileSync(path, 'utf8')).toContain(
    'deferd simulate schedule -o maximal_queue_lifetime=1d --policy doubling --policy &#39;thain(T=5m)&#39;',
  )
  const contention = join(folder, 'contention.html')
  await simulate(['contention', '--client', 'reno', '--html', contention, '--json'])
  expect(open(readFileSync(contention, 'utf8')).charts).toHaveLength(4)
  const crash = join(folder, 'crash.html')
  await simulate(['contention', '--model', 'crash', '--html', crash])
  expect(open(readFileSync(crash, 'utf8')).charts[0]?.data.datasets).toHaveLength(3)
})

test('a page that cannot be written is reported in a sentence', async () => {
  const run = await simulate(['contention', '--client', 'reno', '--html', join(folder, 'nowhere', 'x.html')])
  expect(run.exitCode).toBe(73)
  expect(run.err).toMatch(/^cannot write .*x\.html: ENOENT/)
})
