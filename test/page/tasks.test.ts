/** Tasks of an operator in a real browser, with the number of their actions: a click, a filled field, or a search by the keyboard is one. */
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openDaemonClient } from '../../src/cli/queue-client/api-client.ts'
import { newSigningSecret } from '../../src/subscriptions/new-secret.ts'
import { seededRandom } from '../../src/system/random.ts'
import { launchBrowser, loggedIn, noBrowser } from '../support/browser.ts'
import { instantIn } from '../../src/page/markup/time-range.ts'
import { localTime } from '../../src/presentation/text.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { loadDkimKey } from '../../src/dkim/keys.ts'
import { makeCertificate } from '../../src/testkit/remote/certificate-maker.ts'
import { delivered, first, queue, settleOne } from '../conformance/mail.ts'
import { DnsServer } from '../support/dns-server.ts'
import { DEAD_HOST, memberOf, PageDaemon } from '../support/page-daemon.ts'

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
    await user.page.getByText('customer7@far.example').first().waitFor()
    await user.page.getByText('Connection refused').first().waitFor()
    expect(user.actions).toBeLessThanOrEqual(2)
  })

  test('why a message is late whose Message-ID or words of whose subject are known: at most 2', async () => {
    const user = await opened()
    const content = 'Message-ID: <order.77@shop.example>\r\nSubject: Your order 77 is late\r\n\r\nx\r\n'
    await daemon.send([{ from: 'news@shop.example', to: 'late@far.example', content: Buffer.from(content) }])
    for (const text of ['<order.77@shop.example>', 'order 77']) {
      const before = user.actions
      await user.search(text)
      await user.page.getByText('Connection refused').first().waitFor()
      await user.page.getByText('late@far.example').first().waitFor()
      expect(user.actions - before).toBeLessThanOrEqual(2)
    }
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

  test('the trend of a week: 1', async () => {
    const user = await opened()
    await user.click(user.link('Trends'))
    await user.page.locator('nav[aria-label="Range of the charts"] a[aria-current]').getByText('7d').waitFor()
    await user.page.getByRole('img', { name: 'Flow, recipients per hour' }).waitFor()
    expect(user.actions).toBe(1)
  })

  test('a destination is suspended: at most 3', async () => {
    const user = await opened()
    await user.click(user.page.locator('table.where').getByRole('link', { name: DESTINATION }))
    await user.click(user.page.getByRole('link', { name: 'Suspend…' }))
    await user.click(user.page.getByRole('button', { name: 'Suspend' }))
    await user.page.getByText('Suspended by page:alice').waitFor()
    expect(user.actions).toBeLessThanOrEqual(3)
  })

  test('one event is sent again to a program: at most 3', async () => {
    const user = await opened({
      events: { app: { to: `file:${join(tmpdir(), `deferd-task-${process.pid}`)}`, types: ['message.accepted'] } },
    })
    await user.page.keyboard.press('g')
    await user.page.keyboard.press('e')
    user.actions++
    await user.click(user.link('app…').first())
    await user.click(user.page.getByRole('button', { name: 'Send 1 event' }))
    await user.page.getByText('It was asked to send 1 event.').waitFor()
    expect(user.actions).toBeLessThanOrEqual(3)
  })

  test('a webhook is tested: at most 3; and gets a new secret: at most 3', async () => {
    const user = await opened()
    const client = await openDaemonClient(daemon.queueDirectory)
    const hook = { to: 'http://127.0.0.1:9/hook', allowPrivate: true, types: [], destinations: [], senders: [], batch: 1 }
    await client?.addSubscription({ ...hook, name: 'app', format: 'deferd', secret: newSigningSecret(seededRandom(1)), who: 'root' })
    await client?.close()
    await user.page.keyboard.press('g')
    await user.page.keyboard.press('w')
    await user.click(user.link('app'))
    await user.click(user.link('Test…'))
    await user.click(user.page.getByRole('button', { name: 'Send a test event' }))
    await user.page.getByRole('heading', { name: 'app did not take the test event' }).waitFor()
    expect(user.actions).toBeLessThanOrEqual(3)
    user.actions = 0
    await user.click(user.link('app'))
    await user.click(user.link('New secret…'))
    await user.click(user.page.getByRole('button', { name: 'Make a new secret' }))
    await user.page.getByText(/^whsec_/).waitFor()
    expect(user.actions).toBeLessThanOrEqual(3)
  })

  test('an address is taken off the suppression list: at most 3', async () => {
    const user = await opened()
    const client = await openDaemonClient(daemon.queueDirectory)
    await client?.addSuppression({ scope: '*', address: 'ann@far.example', reason: 'manual', text: null, duration: null }, 'root')
    await client?.close()
    await user.page.keyboard.press('g')
    await user.page.keyboard.press('u')
    user.actions++
    await user.click(user.page.getByRole('row').filter({ hasText: 'ann@far.example' }).getByRole('link', { name: 'Remove…' }))
    await user.click(user.page.getByRole('button', { name: 'Remove the entry' }))
    await user.page.getByText('No address is on the suppression list.').waitFor()
    expect(user.actions).toBeLessThanOrEqual(3)
  })

  test('a provider is suspended with all its destinations: at most 3; and resumed: at most 2', async () => {
    const user = await opened({ provider: { big: { mx: ['.big.example'] } } }, (folder) => memberOf('big', folder))
    await user.click(user.link('Providers').first())
    await user.click(user.page.getByRole('row').filter({ hasText: 'big' }).getByRole('link', { name: 'Suspend…' }))
    await user.click(user.page.getByRole('button', { name: 'Suspend' }))
    await user.page.getByText('Suspended by page:alice').waitFor()
    expect(user.actions).toBeLessThanOrEqual(3)
    await user.page.getByRole('row').filter({ hasText: DESTINATION }).getByText('suspended').waitFor()
    await user.page.goto(`${daemon.url}destinations/${encodeURIComponent(DESTINATION)}`)
    await user.page.getByText('with provider').waitFor()
    await user.click(user.page.getByRole('link', { name: 'Resume big…' }))
    await user.click(user.page.getByRole('button', { name: 'Resume' }))
    await user.page.getByText('Open: deliveries begin').waitFor()
    expect(user.actions).toBeLessThanOrEqual(3 + 2)
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

  for (const hasScripts of [true, false])
    test(`a domain of senders is checked against its records: at most 4, ${hasScripts ? 'with' : 'without'} scripts`, async () => {
      await using dns = await DnsServer.start()
      const folder = mkdtempSync(join(tmpdir(), 'deferd-keys-'))
      const keys = ['s1', 's2'].map((selector) => {
        const path = join(folder, `${selector}.pem`)
        writeFileSync(path, makeCertificate({ seed: selector }).key, { mode: 0o600 })
        return { path, selector, staged: false }
      })
      const [record1, record2] = keys.map((key) => loadDkimKey(key).record)
      dns.zone.set('s1._domainkey.us.example', [record1 ?? ''])
      dns.zone.set('s2._domainkey.us.example', [`${record2 ?? ''}AAAA`, '<img src=x onerror=pwned()>'])
      dns.zone.set('_dmarc.us.example', ['v=DMARC1; p=<script>pwned()</script>'])
      daemon = await PageDaemon.start({
        myorigin: 'us.example',
        dns_servers: [dns.address],
        dkim: { 'us.example': { keys: keys.map(({ selector, path }) => `${selector}:${path}`) } },
      })
      rmSync(folder, { recursive: true })
      context = await browser.newContext({ javaScriptEnabled: hasScripts })
      const user = new CountedPage(await loggedIn(context, daemon, hasScripts))
      const isShown = await user.link('Deliverability').isVisible()
      if (!isShown) await user.click(user.page.getByRole('button', { name: /^System/ }))
      await user.click(user.link('Deliverability'))
      await user.page.getByText('us.example is not checked.').waitFor()
      await user.click(user.link('Check now…').first())
      await user.click(user.page.getByRole('button', { name: 'Check us.example' }))
      await user.page.getByRole('heading', { name: 'What receivers see of us' }).waitFor()
      expect(user.actions).toBeLessThanOrEqual(4)
      const text = (await user.page.locator('main').innerText()).replaceAll(/\s+/g, ' ')
      expect(text).toContain('DKIM and DMARC are wrong')
      expect(text).toContain('s1._domainkey.us.example: published')
      expect(text).toMatch(/s2\._domainkey\.us\.example: (?!published)/)
      expect(text).toContain('p=<script>pwned()</script> is no policy')
      expect(await user.page.locator('main script, main img').count()).toBe(0)
    })
})
