/** Tasks of an operator in a real browser, with the number of their actions: a click, a filled field, or a search by the keyboard is one. */
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser, loggedIn, noBrowser } from '../support/browser.ts'
import { instantIn } from '../../src/page/markup/time-range.ts'
import { localTime } from '../../src/presentation/text.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { delivered, first, queue, settleOne } from '../conformance/mail.ts'
import { DEAD_HOST, PageDaemon } from '../support/page-daemon.ts'

/** The number of a plan that has more than 1,000 messages is typed: one action more than in these tests. */
const TYPED = 1
const DESTINATION = `smtp:${DEAD_HOST}`

/** A tab whose actions are counted. */
class CountedPage {
  readonly page: Page
  actions = 0

  constructor(page: Page) {
    this.page = page
  }

  async click(target: Locator): Promise<void> {
    await target.click()
    this.actions++
  }

  /** Fills a field and presses Enter. */
  async fill(field: Locator, text: string): Promise<void> {
    await field.fill(text)
    await field.press('Enter')
    this.actions++
  }

  /** Searches from anywhere, without the mouse. */
  async search(text: string): Promise<void> {
    await this.page.keyboard.press('/')
    await this.page.keyboard.type(text)
    await this.page.keyboard.press('Enter')
    this.actions++
  }

  link(name: string): Locator {
    return this.page.getByRole('link', { name, exact: true })
  }
}

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'tasks' : `tasks (skipped: ${noBrowser})`, () => {
  let browser: Browser
  let daemon: PageDaemon
  let context: BrowserContext
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())
  afterEach(async () => {
    await context.close()
    await daemon.close()
  })

  async function opened(more: object = {}, fill?: (queueDirectory: string) => Promise<void>): Promise<CountedPage> {
    daemon = await PageDaemon.start(more, fill)
    await daemon.send(
      Array.from({ length: 12 }, (_, n) => ({
        from: n % 4 === 0 ? 'ann@example.org' : 'news@shop.example',
        to: `customer${n}@far.example`,
      })),
    )
    context = await browser.newContext()
    return new CountedPage(await loggedIn(context, daemon))
  }

  test('why the mail of one user is late: at most 2', async () => {
    const user = await opened()
    await user.search('customer7@far.example')
    await user.click(user.page.locator('table.messages tbody a[href*="messages/"]').first())
    await user.page.getByText('customer7@far.example').first().waitFor()
    await user.page.getByText('Connection refused').first().waitFor()
    expect(user.actions).toBeLessThanOrEqual(2)
  })

  test('the biggest cause of a destination is put on hold: at most 4', async () => {
    const user = await opened()
    await user.click(user.page.locator('table.where').getByRole('link', { name: DESTINATION }))
    await user.click(user.page.getByRole('row').filter({ hasText: 'Connection refused' }).first().getByRole('link', { name: 'Hold…' }))
    await user.click(user.page.getByRole('button', { name: /^Hold \d+ messages?$/ }))
    await user.page.getByText(/messages? w(?:as|ere) put on hold/).waitFor()
    expect(user.actions + TYPED).toBeLessThanOrEqual(4)
  })

  test('the biggest cause over all destinations is put on hold: at most 4', async () => {
    const user = await opened()
    await user.click(user.link('Causes').first())
    await user.click(user.page.getByRole('row').filter({ hasText: 'Connection refused' }).first().getByRole('link', { name: 'Hold…' }))
    await user.click(user.page.getByRole('button', { name: /^Hold \d+ messages?$/ }))
    await user.page.getByText(/messages? w(?:as|ere) put on hold/).waitFor()
    expect(user.actions + TYPED).toBeLessThanOrEqual(4)
  })

  test('a destination is suspended: at most 3', async () => {
    const user = await opened()
    await user.click(user.page.locator('table.where').getByRole('link', { name: DESTINATION }))
    await user.click(user.page.getByRole('link', { name: 'Suspend…' }))
    await user.click(user.page.getByRole('button', { name: 'Suspend' }))
    await user.page.getByText('Suspended by page:alice').waitFor()
    expect(user.actions).toBeLessThanOrEqual(3)
  })

  test('a message that left yesterday at 14:00 is found by that time: at most 3', async () => {
    const yesterday = localTime(Date.now() - 24 * 3_600_000, systemClock).slice(0, 10)
    const user = await opened({}, async (queueDirectory) => {
      const { store, close } = await openStore(queueDirectory, { threads: false, create: true })
      const midnight = (instantIn(`${yesterday}T14:00`, { clock: systemClock }) ?? 0) - 14 * 3_600_000
      for (let hour = 0; hour < 24; hour++) {
        const at = midnight + hour * 3_600_000 - 1_000
        const id = await queue(store, { at, leased: true, to: [{ address: `hour${hour}@far.example` }] })
        await settleOne(store, id, delivered(first(id), at), at)
      }
      await close()
    })
    await user.click(user.link('History'))
    await user.fill(user.page.getByLabel(/^To /), `${yesterday}T14:00`)
    await user.click(user.page.locator('table.history tbody tr').first().getByRole('link'))
    await user.page.getByText('hour14@far.example').first().waitFor()
    expect(user.actions).toBeLessThanOrEqual(3)
  })

  test('a queued message of yesterday at 14:00 is found by that time: at most 3', async () => {
    const yesterday = localTime(Date.now() - 24 * 3_600_000, systemClock).slice(0, 10)
    const user = await opened({}, async (queueDirectory) => {
      const { store, close } = await openStore(queueDirectory, { threads: false, create: true })
      const midnight = (instantIn(`${yesterday}T14:00`, { clock: systemClock }) ?? 0) - 14 * 3_600_000
      for (let hour = 0; hour < 24; hour++)
        await queue(store, { at: midnight + hour * 3_600_000, to: [{ address: `hour${hour}@far.example` }] })
      await close()
    })
    await user.click(user.link('Messages'))
    await user.fill(user.page.getByLabel(/^Arrived from /), `${yesterday}T14:00`)
    await user.click(user.page.locator('table.messages tbody tr').first().getByRole('link').first())
    await user.page.getByText('hour14@far.example').first().waitFor()
    expect(user.actions).toBeLessThanOrEqual(3)
  })

  test('all mail of a sender is deleted: at most 4', async () => {
    const user = await opened()
    await user.click(user.page.locator('table.where').getByRole('link', { name: DESTINATION }))
    await user.click(user.page.getByRole('row').filter({ hasText: 'news@shop.example' }).getByRole('link', { name: 'Delete…' }))
    await user.click(user.page.getByRole('button', { name: 'Delete 9 messages' }))
    await user.page.getByText('9 messages were moved to the trash.').waitFor()
    expect(user.actions + TYPED).toBeLessThanOrEqual(4)
  })
})
