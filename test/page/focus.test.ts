/** Keyboard focus in a real browser: what has the focus is not behind the bar of operations, which stays in view (WCAG 2.2, 2.4.11). */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser, noBrowser } from '../support/browser.ts'
import { PageDaemon } from '../support/page-daemon.ts'

/** The focused element when the bar covers a part of it, with the pixels that are covered; `''` for another one, null outside the document. */
const COVERED = `(() => {
  const focused = document.activeElement
  if (focused === null || focused === document.body) return null
  const bar = document.querySelector('.actions[role=group]')
  if (bar.contains(focused)) return ''
  // A check box is shown by its label.
  const shown = focused.closest('label') ?? focused
  const [one, other] = [shown.getBoundingClientRect(), bar.getBoundingClientRect()]
  const covered = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)
  const isBeside = one.right <= other.left || one.left >= other.right
  return covered <= 0.5 || isBeside ? '' : Math.round(covered) + 'px of ' + focused.outerHTML.slice(0, 80)
})()`

/** More than the elements of the screen that take the focus. */
const MOST = 400

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'in Chromium' : `in a browser (skipped: ${noBrowser})`, () => {
  let daemon: PageDaemon
  let browser: Browser

  beforeAll(async () => {
    browser = await launchBrowser()
    daemon = await PageDaemon.start({ class: { fast: { weight: 100 }, normal: { weight: 10 } } })
    await daemon.send(Array.from({ length: 20 }, (_, n) => ({ from: 'news@shop.example', to: `customer${n}@far.example` })))
  })
  afterAll(async () => {
    await browser.close()
    await daemon.close()
  })

  /** The elements that the bar covers when `key` has brought the focus to them, from one end of the screen to the other. */
  async function coveredBy(page: Page, key: 'Tab' | 'Shift+Tab') {
    const covered: string[] = []
    let focused = 0
    for (; focused < MOST; focused++) {
      await page.keyboard.press(key)
      const found = await page.evaluate<string | null>(COVERED)
      if (found === null) break
      if (found !== '') covered.push(found)
    }
    return { covered, focused }
  }

  for (const [width, javaScriptEnabled] of [
    [320, true],
    [641, true],
    [1440, true],
    [320, false],
    [768, false],
  ] as const)
    test(
      `the bar covers nothing that has the focus at ${width} pixels, ${javaScriptEnabled ? 'with' : 'without'} scripts`,
      { timeout: 300_000 },
      async () => {
        const page = await browser.newPage({ viewport: { width, height: 640 }, javaScriptEnabled })
        await page.goto(`${daemon.url}login`)
        await page.fill('input[name=code]', await daemon.code('admin'))
        await page.getByRole('button', { name: 'Log in' }).click()
        await page.waitForURL(daemon.url)
        await page.goto(`${daemon.url}messages`)
        // The verbs appear with the first choice, here of the lowest row in the window, which the script keeps in view.
        await page.locator('input[name=id]').nth(5).focus()
        await page.evaluate('scrollBy(0, document.activeElement.closest("tr").getBoundingClientRect().bottom - innerHeight)')
        await page.keyboard.press('Space')
        if (javaScriptEnabled) expect(await page.evaluate(COVERED)).toBe('')
        expect(await page.evaluate("getComputedStyle(document.querySelector('.actions[role=group]')).position")).toBe('sticky')
        for (const key of ['Tab', 'Shift+Tab'] as const) {
          const { covered, focused } = await coveredBy(page, key)
          expect(focused).toBeGreaterThan(40)
          expect(covered, key).toEqual([])
        }
        await page.close()
      },
    )
})
