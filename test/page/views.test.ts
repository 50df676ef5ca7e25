/** Filters of lists are kept under names by the browser, and lead back to the list. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser, loggedIn, noBrowser } from '../support/browser.ts'
import { PageDaemon } from '../support/page-daemon.ts'

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'saved views' : `saved views (skipped: ${noBrowser})`, () => {
  let browser: Browser
  let daemon: PageDaemon
  beforeAll(async () => {
    ;[browser, daemon] = await Promise.all([launchBrowser(), PageDaemon.start()])
  })
  afterAll(async () => {
    await browser.close()
    await daemon.close()
  })

  const names = (page: Page): Promise<readonly string[]> => page.locator('.views li a').allTextContents()

  /** Opens a list, which is there when the queue is counted. */
  async function open(page: Page, path: string): Promise<void> {
    await expect
      .poll(
        async () => {
          await page.goto(`${daemon.url}${path}`)
          return page.locator('form.filter').count()
        },
        { timeout: 20_000 },
      )
      .toBe(1)
  }

  async function save(page: Page, name: string): Promise<void> {
    if (!(await page.locator('.views').evaluate((box) => box.hasAttribute('open')))) await page.locator('.views summary').click()
    await page.getByLabel('Name of this view').fill(name)
    await page.locator('.views').getByRole('button', { name: 'Save' }).click()
  }

  test('a view has a name, its own list, and lives until it is removed', async () => {
    const context = await browser.newContext()
    const page = await loggedIn(context, daemon)
    await open(page, 'messages?sender=*%40shop.example&arrived_after=')
    await save(page, 'Mail of the shop')
    expect(await page.locator('.views output').textContent()).toBe('The view Mail of the shop is saved in this browser.')
    await open(page, 'messages?queue=hold')
    await save(page, '<b>On hold</b>')
    expect(await names(page)).toEqual(['Mail of the shop', '<b>On hold</b>'])
    // A name is used once, for the last filter with it.
    await open(page, 'messages?queue=hold&order=newest')
    await save(page, '<b>On hold</b>')
    expect(await names(page)).toEqual(['Mail of the shop', '<b>On hold</b>'])

    // Without conditions, a list has its views and nothing to save; a list without any has no box.
    await open(page, 'messages')
    expect(await page.locator('.views form').count()).toBe(0)
    await page.locator('.views summary').click()
    await page.getByRole('link', { name: 'Mail of the shop' }).click()
    await page.waitForURL(`${daemon.url}messages?sender=*%40shop.example`)
    expect(await page.locator('.views a[aria-current]').textContent()).toBe('Mail of the shop')
    await open(page, 'audit')
    expect(await page.locator('.views').isHidden()).toBe(true)
    await open(page, 'audit?action=hold')
    await save(page, 'Holds')
    expect(await page.locator('.views li a').getAttribute('href')).toMatch(/\/audit\?action=hold$/)

    await open(page, 'messages')
    await page.locator('.views summary').click()
    await page.getByRole('button', { name: 'Remove the view Mail of the shop' }).click()
    expect(await names(page)).toEqual(['<b>On hold</b>'])
    await page.reload()
    expect(await names(page)).toEqual(['<b>On hold</b>'])
    await context.close()
  })

  test('a browser that keeps nothing says so, and damaged values are no views', async () => {
    const context = await browser.newContext()
    await context.addInitScript(() => {
      localStorage.setItem('deferd-views', '[1, {"place": "messages"}, null')
      Storage.prototype.setItem = () => {
        throw new DOMException('full', 'QuotaExceededError')
      }
    })
    const page = await loggedIn(context, daemon)
    await open(page, 'messages?queue=hold')
    await save(page, 'On hold')
    expect(await page.locator('.views output').textContent()).toContain('save the address as a bookmark')
    expect(await names(page)).toEqual([])
    await context.close()
  })

  test('without scripts the filter has no box of views', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false })
    const page = await loggedIn(context, daemon, false)
    await open(page, 'messages?queue=hold')
    expect(await page.locator('.views').count()).toBe(0)
    await context.close()
  })
})
