/** The page over a world in a real browser: its bar advances the clock, and ages stand with it. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser, noBrowser } from '../support/browser.ts'
import { TestLab, type LabClient } from '../support/lab-client.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'in Chromium' : `in a browser (skipped: ${noBrowser})`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  /** A tab at the page of a world. Errors of scripts and violations of the policy fail the test at the end. */
  async function shown(lab: TestLab, world: LabClient, { path = '', width = 1280, javaScriptEnabled = true } = {}) {
    const context = await browser.newContext({ viewport: { width, height: 800 }, javaScriptEnabled })
    const page = await context.newPage()
    const errors: string[] = []
    page.on('pageerror', (error) => errors.push(error.message))
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
    await page.goto(`${lab.base}/worlds/${world.id}/${path}`)
    const end = async () => {
      await context.close()
      expect(errors).toEqual([])
    }
    return { page, [Symbol.asyncDispose]: end }
  }

  /** A world with a greylisted message. */
  async function waiting(lab: TestLab): Promise<LabClient> {
    const world = await lab.world()
    await world.post('/destinations/slow.example/greylists', { delay: '5m' })
    await world.send('ann@slow.example')
    await world.post('/clock/advance', { by: '42s' })
    return world
  }

  const time = (page: Page) => page.getByRole('region', { name: 'Time of the world' }).locator('time').textContent()

  for (const javaScriptEnabled of [true, false])
    test(`+1 h moves a message, and the screen stays, ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      await using lab = await TestLab.open()
      const world = await waiting(lab)
      await using tab = await shown(lab, world, { path: 'messages?queue=deferred', javaScriptEnabled })
      const { page } = tab
      expect(await page.locator('main').textContent()).toContain('app@us.example')
      expect(await time(page)).toContain('00:00:42')
      await page.getByRole('button', { name: '+1 h' }).click()
      await expect.poll(() => time(page), { timeout: 30_000 }).toContain('01:00:42')
      expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe(`/lab/v1/worlds/${world.id}/messages?queue=deferred`)
      expect(await page.locator('main').textContent()).not.toContain('app@us.example')
      expect((await world.get('/recipients/ann@slow.example')).copies).toEqual([1])
    })

  test('ages stand with the clock of the world, and follow its speed', async () => {
    await using lab = await TestLab.open()
    const world = await waiting(lab)
    await using tab = await shown(lab, world, { path: '' })
    const { page } = tab
    const age = () => page.locator('time[data-relative=age]').first().textContent()
    expect(await age()).toBe('42s')
    await page.waitForTimeout(3_500)
    expect(await age()).toBe('42s')
    await page.getByLabel('Speed').fill('60')
    await page.getByRole('button', { name: 'Set', exact: true }).click()
    await expect.poll(() => page.locator('body').getAttribute('data-speed'), { timeout: 30_000 }).toBe('60')
    await expect.poll(age, { timeout: 30_000 }).not.toBe('42s')
    expect(await world.get('/clock')).toMatchObject({ speed: 60 })
  })

  test('settle and crash are buttons, too', async () => {
    await using lab = await TestLab.open()
    const world = await waiting(lab)
    await using tab = await shown(lab, world)
    const { page } = tab
    await page.getByRole('button', { name: 'Crash' }).click()
    await expect.poll(async () => (await world.get('/clock')).elapsed, { timeout: 30_000 }).toBe(42)
    await page.getByRole('button', { name: 'Settle' }).click()
    await expect.poll(async () => (await world.get('/recipients/ann@slow.example')).copies, { timeout: 30_000 }).toEqual([1])
  })

  test.each(['', 'messages', 'destinations', 'events'])('the screen /%s has no violation of accessibility', async (path) => {
    await using lab = await TestLab.open()
    const world = await waiting(lab)
    for (const width of [320, 1280]) {
      await using tab = await shown(lab, world, { path, width })
      const { page } = tab
      await page.evaluate(AXE)
      const violations = await page.evaluate(
        `axe.run({ runOnly: ${JSON.stringify(TAGS)} }).then(({ violations }) => violations.map(({ id }) => id))`,
      )
      expect(violations).toEqual([])
      expect(await page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    }
  })
})
