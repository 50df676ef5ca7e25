/** Scenarios with fair shares and classes: the mail of each share over time. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { scenarioTable } from '../../../src/cli/render/scenario-table.ts'
import { scenarioPage } from '../../../src/simulator/pages/scenario-page.ts'
import { lastDelivery, scenarioJson, waitsOf } from '../../../src/simulator/scenario/scenario-figures.ts'
import { readScenario } from '../../../src/simulator/scenario/scenario-file.ts'
import { runScenario } from '../../../src/simulator/scenario/scenario-run.ts'
import type { ShareRecord } from '../../../src/simulator/scenario/scenario-record.ts'
import { SECOND } from '../../../src/system/clock.ts'

const DISPLAY = { width: 100, coloured: false }

/** The example with fewer messages. */
const EXAMPLE = readFileSync(new URL('../../../examples/fair-shares.toml', import.meta.url), 'utf8')
  .replace('messages = 2000', 'messages = 120')
  .replace('messages = 200\n', 'messages = 20\n')
  .replace('starts = "30s"', 'starts = "3s"')
  .replaceAll('concurrency = 10', 'concurrency = 4')
  .replaceAll('concurrency_limit = 10', 'concurrency_limit = 4')

const run = (text: string, ...overrides: readonly string[]) => runScenario(readScenario(text, 'shares.toml', overrides), { seed: 1 })

const named = (shares: readonly ShareRecord[], key: string): ShareRecord => {
  const found = shares.find((one) => one.key === key)
  if (found === undefined) throw new Error(`no share ${key}`)
  return found
}

test('the mail of a share passes the backlog of another, and its waits are shown apart', async () => {
  const result = await run(EXAMPLE)
  const [news, shop] = [named(result.shares, 'news.example'), named(result.shares, 'shop.example')]
  expect([news.delivered.length, shop.delivered.length]).toEqual([120, 20])
  expect(lastDelivery(shop) ?? Infinity).toBeLessThan((lastDelivery(news) ?? 0) - 5 * SECOND)
  const json = scenarioJson(result, 'shares', 1) as { readonly shares: readonly { readonly key: string; readonly delivered: number }[] }
  expect(json.shares.map(({ key, delivered }) => [key, delivered])).toEqual([
    ['news.example', 120],
    ['shop.example', 20],
  ])
  const text = scenarioTable(result, 'shares', 1, DISPLAY)
  expect(text).toMatch(/^SHARE +MAIL DELIVERED .*\nnews\.example +120 +120 +0 +0 +0 .*\nshop\.example +20 +20 /m)
  expect(text).toMatch(/^share shop\.example\n {2}in queue, at most \d+ .*\n {2}delivered, at most \d+ /m)
  const page = scenarioPage(result, 'shares', { headings: [], rows: [] }, 'deferd simulate run')
  const plot = page.plots.find(({ title }) => title === 'Delivered, by share')
  expect(plot?.series.map(({ name }) => name)).toEqual(['news.example', 'shop.example'])
  const sums = plot?.series.map(({ points }) => points.reduce((sum, [, deliveries]) => sum + deliveries, 0))
  expect(sums).toEqual([120, 20])
})

test('without fair shares the same mail waits behind the backlog, and no shares are listed', async () => {
  const result = await run(EXAMPLE, 'fair_share=no')
  expect(result.shares).toEqual([])
  expect(scenarioJson(result, 'shares', 1)).not.toHaveProperty('shares')
  expect(scenarioTable(result, 'shares', 1, DISPLAY)).not.toContain('SHARE')
  // The last message is one of the shop.
  expect(waitsOf(result.destinations[0]!)?.max ?? 0).toBeGreaterThan(20 * SECOND)
})

const CLASSES = `
[mail.bulk]
messages = 100
to = "provider.example"
class = "low"
[mail.alarms]
messages = 10
to = "provider.example"
sender = "alarms@us.example"
starts = "5s"
[config]
default_destination_concurrency_limit = 2
initial_destination_concurrency = 2
sender_class_maps = { "alarms@us.example" = "high" }
default_class = "low"
[config.class.high]
weight = 100
[config.class.low]
weight = 1
[rule.slow]
at = "end-of-data"
delay = "1s"
`

test('a stream has the class that it names, or that the configuration gives its sender', async () => {
  const { shares } = await run(CLASSES)
  expect(shares.map(({ class: name, key, accepted }) => [name, key, accepted.length])).toEqual([
    ['low', '', 100],
    ['high', '', 10],
  ])
  const [low, high] = shares.map((one) => lastDelivery(one) ?? 0)
  expect(high).toBeLessThan((low ?? 0) / 2)
})

test('an unknown class is a mistake, with the line', () => {
  expect(() => readScenario(CLASSES.replace('class = "low"', 'class = "slow"'), 's.toml')).toThrow(
    's.toml:5: class: there is no table [config.class.slow]; classes are high, low',
  )
})
