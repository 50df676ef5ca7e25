/** Long names in a real browser: no screen is wider than the window, cuts a text or breaks a row, on a screen or on paper. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDaemonClient } from '../../src/cli/queue-client/api-client.ts'
import { newSigningSecret } from '../../src/subscriptions/new-secret.ts'
import { seededRandom } from '../../src/system/random.ts'
import { launchBrowser, noBrowser } from '../support/browser.ts'
import { layoutFaults } from '../support/layout-faults.ts'
import { DEAD_HOST, PageDaemon } from '../support/page-daemon.ts'
import { RemoteLedger } from '../support/remote-ledger.ts'

const LONG_HOST = `${'the-mail-of-a-hospital-with-many-departments.'.repeat(4)}clinics.example`
const LONG_NAMES = ['billing-and-invoices-of-the-shop', 'customer-support-notifications', 'a-program-with-a-long-name-of-its-own']
const RETURNED = `ruled-1.${'firstname.'.repeat(4)}lastname@returned.example`
const SCREENS = [
  '',
  'causes',
  'destinations',
  'messages',
  'messages?queue=scheduled',
  'events',
  'history',
  'audit',
  'suppressions',
  'deliverability',
]

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'in Chromium' : `in a browser (skipped: ${noBrowser})`, () => {
  let daemon: PageDaemon
  let browser: Browser
  /** Takes all events. */
  let program: Server
  const far = new RemoteLedger()

  beforeAll(async () => {
    program = createServer((request, response) => {
      request.resume()
      response.writeHead(204).end()
    })
    await new Promise<void>((listening) => program.listen(0, '127.0.0.1', listening))
    far.hasRule = true
    const port = await far.listen()
    browser = await launchBrowser()
    daemon = await PageDaemon.start({
      returned_content_retention: '7d',
      smtpd_future_release_limit: '7d',
      class: { fast: { weight: 100 }, normal: { weight: 10 } },
      transport_maps: {
        'returned.example': `smtp:[127.0.0.1]:${port}`,
        [LONG_HOST]: `smtp:${LONG_HOST}`,
        '*': `smtp:${DEAD_HOST}`,
      },
    })
    const client = await openDaemonClient(daemon.queueDirectory)
    const all = { format: 'deferd', batch: 1, allowPrivate: true, who: 'root' } as const
    const to = `http://127.0.0.1:${(program.address() as AddressInfo).port}/`
    for (const name of LONG_NAMES)
      await client?.addSubscription({
        ...all,
        types: [],
        destinations: [],
        senders: [],
        name,
        to,
        secret: newSigningSecret(seededRandom(1)),
      })
    const listed = { reason: 'complaint', text: null, duration: null } as const
    for (const scope of ['*', 'news.example.com', 'departments-with-long-names.shop.example'])
      for (const address of ['@a-whole-domain.example', `firstname.lastname@${LONG_HOST}`])
        await client?.addSuppression({ ...listed, scope, address }, 'page:ann')
    await client?.close()
    await daemon.send([
      { from: '', to: RETURNED },
      { from: 'ann@example.org', to: `ann@${LONG_HOST}` },
      { from: 'ann@example.org', to: 'ann@far.example' },
      {
        from: 'bounces+customer=far.example@departments-with-long-names.shop.example',
        to: 'ann@far.example',
        parameters: { mail: 'HOLDFOR=86400' },
      },
    ])
  })
  afterAll(async () => {
    await browser.close()
    await daemon.close()
    await far.close()
    program.closeAllConnections()
    await new Promise((closed) => program.close(closed))
  })

  /** A page of a new login, which is that of an administrator by default. */
  async function opened(width: number, role: 'viewer' | 'admin' = 'admin'): Promise<Page> {
    const page = await browser.newPage({ viewport: { width, height: 900 } })
    await page.goto(`${daemon.url}login#${await daemon.code(role)}`)
    await page.waitForURL(daemon.url)
    return page
  }

  const linked = async (page: Page, place: string): Promise<string> => {
    await page.goto(daemon.url + place)
    return new URL((await page.locator('table a[href*="messages/"]').first().getAttribute('href')) ?? '', page.url()).href.slice(
      daemon.url.length,
    )
  }

  for (const width of [320, 375, 641, 720, 768, 1024, 1025, 1440])
    test(`no text is cut and no row is broken at ${width} pixels`, { timeout: 300_000 }, async () => {
      const page = await opened(width)
      await expect
        .poll(() => page.goto(`${daemon.url}history`).then(() => page.getByText('lastname').count()), { timeout: 60_000 })
        .toBeGreaterThan(0)
      const message = await linked(page, 'messages?recipient=ann@far.example&queue=deferred')
      for (const path of [...SCREENS, message, `webhooks/${LONG_NAMES[0] ?? ''}`, `history/resend?recipient=${RETURNED}`]) {
        await page.goto(daemon.url + path)
        expect(await layoutFaults(page), path).toEqual([])
      }
      await page.close()
    })

  test('for a viewer, without check boxes, the columns of messages keep their widths', async () => {
    const page = await opened(1024, 'viewer')
    for (const width of [720, 768, 1024]) {
      await page.setViewportSize({ width, height: 900 })
      await page.goto(`${daemon.url}messages`)
      expect(await layoutFaults(page), String(width)).toEqual([])
    }
    await page.close()
  })

  test('the ages of messages stand in full rows', async () => {
    const page = await opened(1440)
    for (const width of [320, 375, 640, 720, 1024, 1280, 1440, 1920]) {
      await page.setViewportSize({ width, height: 900 })
      const tops = await page.locator('.ages li').evaluateAll((ages) => ages.map((one) => one.getBoundingClientRect().top))
      const rows = [...Map.groupBy(tops, (top) => top).values()].map(({ length }) => length)
      expect(tops.length, String(width)).toBe(10)
      expect(new Set(rows).size, String(width)).toBe(1)
    }
    await page.close()
  })

  test('on paper the screens keep their margins, and have neither buttons nor names without a value', async () => {
    const page = await opened(720)
    await page.emulateMedia({ media: 'print' })
    for (const path of ['', 'messages?queue=scheduled', await linked(page, 'messages?queue=deferred')]) {
      await page.goto(daemon.url + path)
      expect(await layoutFaults(page), path).toEqual([])
      expect(await page.evaluate<string>('getComputedStyle(document.querySelector(".printed")).paddingLeft'), path).not.toBe('0px')
      expect(await page.locator('main :is(.button, button):visible, dt:text-is("content"):visible').count(), path).toBe(0)
    }
    await page.close()
  })

  test('the foot of a refused request ends with the name of the relay', async () => {
    const page = await opened(1024, 'viewer')
    for (const path of ['no-such-screen', 'new-token']) {
      await page.goto(daemon.url + path)
      expect((await page.locator('footer p').first().textContent())?.trim(), path).toMatch(/^deferd\s+\d+\.\d+\.\d+ ·\s+relay\.example$/)
    }
    await page.close()
  })

  test('where a reply has a column, an address that fits beside it is on one line', async () => {
    const page = await opened(1440)
    await page.goto(`${daemon.url}suppressions?address=@a-whole-domain.example`)
    const lines = "[...document.querySelector('tbody .address').getClientRects()].map(({ top }) => top)"
    expect(new Set(await page.evaluate<number[]>(lines)).size).toBe(1)
    await page.close()
  })
})
