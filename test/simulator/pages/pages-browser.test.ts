/** A page of the simulator in a real browser: without scripts, on a phone and a desktop, light and dark. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { compileAlone } from '../../../src/backoff/retry-policy.ts'
import { planOf } from '../../../src/planner/plan.ts'
import { renderPage } from '../../../src/simulator/pages/page.ts'
import { schedulePage } from '../../../src/simulator/pages/schedule-page.ts'
import { days } from '../../../src/system/clock.ts'
import { launchBrowser, noBrowser } from '../../support/browser.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Pairs of visible labels that cover each other. */
const OVERLAPS = `[...document.querySelectorAll('.plot')].flatMap((plot) => {
  const boxes = [...plot.querySelectorAll('text')].map((one) => [one.textContent, one.getBoundingClientRect()]).filter(([, box]) => box.width > 0)
  return boxes.flatMap(([a, one], i) =>
    boxes.slice(i + 1).flatMap(([b, other]) =>
      one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom ? [a + ' / ' + b] : []))
})`

const names = ['doubling', 'thain(T=5m,F=2,M=4h)', 'kumomta']
const table = { headings: ['', ...names], rows: [['attempts', '1', '2', '3']] }

test.skipIf(noBrowser !== null)('plots fit the width, labels keep apart, and there is nothing for axe to report', async () => {
  const plans = names.map((name) => planOf({ name, schedule: { policy: compileAlone(name), lifetime: days(5) }, warnings: [] }))
  const content = renderPage(schedulePage(plans, table, 'deferd simulate schedule'))
  const browser = await launchBrowser()
  try {
    for (const [width, colorScheme] of [
      [390, 'dark'],
      [1280, 'light'],
    ] as const) {
      const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme, bypassCSP: true })
      const page = await context.newPage()
      await page.setContent(content)
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
      expect(await page.evaluate(OVERLAPS)).toEqual([])
      expect(await page.getByRole('img', { name: 'Number of attempts' }).count()).toBe(1)
      await page.evaluate(AXE)
      const { violations } = (await page.evaluate('axe.run()')) as { violations: readonly { id: string }[] }
      expect(violations.map(({ id }) => id)).toEqual([])
      await context.close()
    }
  } finally {
    await browser.close()
  }
})
