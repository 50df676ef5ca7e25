/** The pages: one small file each, without external resources, with all input escaped. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { compileAlone } from '../../../src/backoff/retry-policy.ts'
import { CLIENTS, runClient } from '../../../src/simulator/contention/clients.ts'
import { MODELS, type ModelName, runModel } from '../../../src/simulator/contention/models.ts'
import { contentionPage, modelPage } from '../../../src/simulator/pages/contention-page.ts'
import { type Page, renderPage } from '../../../src/simulator/pages/page.ts'
import type { Plot } from '../../../src/presentation/plots/plot.ts'
import { planOf } from '../../../src/planner/plan.ts'
import { schedulePage } from '../../../src/simulator/pages/schedule-page.ts'
import { days } from '../../../src/system/clock.ts'
import { simulate } from '../../support/simulate-command.ts'

const folder = mkdtempSync(join(tmpdir(), 'deferd-pages-'))
afterAll(() => rmSync(folder, { recursive: true }))

const plan = (name: string) => planOf({ name, schedule: { policy: compileAlone(name), lifetime: days(5) }, warnings: [] })
const table: Page['table'] = { headings: ['a'], rows: [['b']] }

const drawings = (html: string): number => [...html.matchAll(/<svg[^>]* role="img"/g)].length

const points = (plot: Plot | undefined): number => (plot?.series ?? []).reduce((sum, { points: all }) => sum + all.length, 0)

test('a page of contention states the runs that are longer than its plots, and its bars begin at zero', () => {
  const result = runClient({ client: 'backoff', seed: 1, requests: 200, maxBusy: 50 })
  const longer = { ...result, makespan: 1_106_000_000, completed: 1 }
  const runs = [
    { client: 'backoff', result },
    { client: 'slow', result: longer },
  ]
  const { plots } = contentionPage(runs, 200, table, 'x')
  expect(plots[0]?.about).toMatch(/ The plot ends at \d+ s; slow goes on to 1,106 s\.$/)
  expect(plots.filter(({ kind }) => kind === 'bar').map(({ x }) => x.scale)).toEqual(['linear'])
})

describe('a page', () => {
  const page = schedulePage([plan('doubling'), plan('kumomta'), plan('fixed(1s)')], table, 'deferd simulate schedule')
  const html = renderPage(page)

  test('draws every plot', () => {
    expect(drawings(html)).toBe(3)
    for (const { title } of page.plots) expect(html).toContain(`<title>${title}</title>`)
  })

  test('is smaller than a megabyte for any policy', () => {
    expect(points(page.plots[0])).toBeLessThan(1600)
    expect(html.length).toBeLessThan(1_000_000)
  })

  test('loads nothing from the network, and has no script', () => {
    expect(html).not.toMatch(/(src|href)="(?!data:)/)
    expect(html).not.toMatch(/<script|url\(|@import/)
    expect(html).toContain("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
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
    expect(hostile).not.toMatch(/<img|<script|<\/script/)
    expect(hostile).toContain('&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&amp;&quot;: 2 at 0.001s')
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
  expect(drawings(readFileSync(contention, 'utf8'))).toBe(4)
  const crash = join(folder, 'crash.html')
  await simulate(['contention', '--model', 'crash', '--html', crash])
  expect(readFileSync(crash, 'utf8').match(/<li>/g)).toHaveLength(3)
})

test('a page that cannot be written is reported in a sentence', async () => {
  const run = await simulate(['contention', '--client', 'reno', '--html', join(folder, 'nowhere', 'x.html')])
  expect(run.exitCode).toBe(73)
  expect(run.err).toMatch(/^cannot write .*x\.html: ENOENT/)
})
