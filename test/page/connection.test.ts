/** The page in Chromium behind a proxy that strips a prefix, over connections that break, in hidden tabs, and its login. */
import type { Browser, BrowserContext, Page as Tab } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Causes } from '../../src/queries/counts/causes.ts'
import type { Senders } from '../../src/queries/counts/senders.ts'
import type { Now } from '../../src/queries/now.ts'
import type { QueueView } from '../../src/queries/queue-view.ts'
import { defaultConfig } from '../../src/config/load.ts'
import { route } from '../../src/http/route-table.ts'
import { Page } from '../../src/page/web-page.ts'
import { seconds } from '../../src/system/clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { launchBrowser, noBrowser } from '../support/browser.ts'
import { DEAD_HOST, PageDaemon } from '../support/page-daemon.ts'
import { PrefixProxy } from '../support/prefix-proxy.ts'
import { SampleServer } from '../support/web-server.ts'

/** Time limits of requests by timers, which the clock of Playwright advances. */
const LIMITS_BY_TIMERS = `AbortSignal.timeout = (ms) => {
  const limit = new AbortController()
  setTimeout(() => limit.abort(new DOMException('signal timed out', 'TimeoutError')), ms)
  return limit.signal
}`

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'in Chromium' : `in a browser (skipped: ${noBrowser})`, () => {
  let daemon: PageDaemon
  let proxy: PrefixProxy
  let browser: Browser
  const contexts: BrowserContext[] = []

  beforeAll(async () => {
    browser = await launchBrowser()
    daemon = await PageDaemon.start()
    proxy = await new PrefixProxy(daemon.url, '/a/b/').listen()
    await daemon.send(
      Array.from({ length: 5 }, (_, i) => ({ from: i === 0 ? 'ann@example.org' : 'news@shop.example', to: `customer${i}@far.example` })),
    )
  })
  afterAll(async () => {
    await browser.close()
    await proxy.stop()
    await daemon.close()
  })
  afterEach(async () => {
    proxy.state = 'works'
    for (const context of contexts.splice(0)) await context.close()
  })

  async function tab(options: Parameters<Browser['newContext']>[0] = {}): Promise<Tab> {
    const context = await browser.newContext(options)
    contexts.push(context)
    return context.newPage()
  }

  /** A tab with the first screen, through the proxy. Its time stands still between calls of `runFor`. */
  async function liveTab(): Promise<Tab> {
    const page = await tab()
    await page.goto(`${proxy.url}login#${await daemon.code()}`)
    await page.waitForURL(proxy.url)
    await page.clock.install()
    await page.addInitScript(LIMITS_BY_TIMERS)
    await page.clock.pauseAt(Date.now() + seconds(60))
    await page.goto(proxy.url)
    await page.evaluate('globalThis.isSameDocument = true')
    await page.getByText('live', { exact: true }).waitFor()
    return page
  }

  /** Advances the time of a page in steps, until a condition holds: the network may be slower than its timers. */
  async function runUntil(page: Tab, condition: () => Promise<boolean>, step: number): Promise<void> {
    while (!(await condition())) await page.clock.runFor(step)
  }
  const untilLive = (page: Tab) => runUntil(page, () => page.getByText('live', { exact: true }).isVisible(), seconds(1))

  const incoming = (page: Tab) => page.locator('.queues [data-live="queues/deferred/messages"]')
  const shownIn = async (page: Tab): Promise<number> => Number(await incoming(page).textContent())
  const isStale = (page: Tab) => page.evaluate<boolean>("document.body.classList.contains('stale')")
  const show = (page: Tab, state: 'hidden' | 'visible') =>
    page.evaluate(
      `Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
    )
  const queueOne = () => daemon.send([{ from: 'new@example.org', to: 'new@far.example' }])

  test('behind a proxy that strips a prefix, without scripts: list, filter, message, flush, hold and undo', async () => {
    const page = await tab({ javaScriptEnabled: false })
    await page.goto(`${proxy.url}messages?queue=deferred`)
    await page.waitForURL(`${proxy.url}login?back=messages%3Fqueue%3Ddeferred`)
    await page.fill('input[name=code]', await daemon.code())
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.waitForURL(`${proxy.url}messages?queue=deferred`)
    await page.getByRole('link', { name: 'Messages' }).click()
    await page.locator('.senders').getByRole('link', { name: 'news@shop.example' }).click()
    await page.getByText(/4 messages: from news@shop\.example/).waitFor()
    await page.locator('input[name=recipient]').fill('customer2@far.example')
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByText(/1 message: from news@shop\.example, to customer2@far\.example/).waitFor()
    await page.locator('table a[href*="messages/"]').first().click()
    await page.waitForURL(/\/a\/b\/messages\/\w+$/)
    await page.getByRole('link', { name: 'Flush…' }).click()
    await page.getByRole('button', { name: 'Flush 1 message' }).click()
    await page.getByText('1 message was made due.').waitFor()
    await page.getByRole('link', { name: 'Back' }).click()
    await page.getByRole('link', { name: 'Hold…' }).click()
    await page.getByRole('button', { name: 'Hold 1 message' }).click()
    await page.getByText('1 message was put on hold.').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('1 message was released.').waitFor()
    expect(page.url()).toMatch(/\/a\/b\/operations\/\d+\?/)
    await page.getByRole('link', { name: 'Destinations' }).click()
    await page.getByRole('link', { name: 'smtp:[127.0.0.1]:9' }).first().click()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.waitForURL(`${proxy.url}login`)
    expect(proxy.outside).toEqual([])
  })

  test('while the stream is cut, the page says since when, asks instead, and is live again without a reload', async () => {
    const page = await liveTab()
    proxy.state = 'answers 502'
    proxy.cut()
    const unanswered = page.getByText(/^not live since \d\d:\d\d: the server answers 502$/)
    await runUntil(page, () => unanswered.isVisible(), 10)
    expect(await isStale(page)).toBe(true)
    const colours = `['.light', '.light .mark:is(.when-good, .when-good *)'].map((one) => getComputedStyle(document.querySelector(one)).color)`
    const [soft, faint] = await page.evaluate<readonly [string, string]>(`['--soft', '--faint'].map((name) => {
      const sample = document.body.appendChild(document.createElement('span'))
      sample.style.color = 'var(' + name + ')'
      const colour = getComputedStyle(sample).color
      sample.remove()
      return colour
    })`)
    expect(await page.evaluate(colours), 'the light is grey while its state is old').toEqual([soft, faint])
    proxy.state = 'refuses streams'
    const before = await shownIn(page)
    await queueOne()
    await page.clock.runFor(seconds(10))
    await page.getByText(/^not live since \d\d:\d\d: asks every 10 s$/).waitFor()
    await runUntil(page, async () => (await shownIn(page)) === before + 1, seconds(1))
    expect(await isStale(page)).toBe(false)
    proxy.state = 'works'
    await untilLive(page)
    const follow = async (count: number): Promise<void> => {
      await queueOne()
      await expect.poll(() => shownIn(page)).toBe(count)
    }
    await follow(before + 2)
    const asked = proxy.requests
    // Longer than the interval of requests. An event came at the time from which each step begins, and the next one is awaited.
    for (let step = 0; step < 3; step++) {
      await page.clock.runFor(seconds(4))
      await follow(before + 3 + step)
    }
    expect([proxy.requests, proxy.streams.size, await page.evaluate('isSameDocument')]).toEqual([asked, 1, true])
  })

  test('while the relay answers with a failure, the rows of an open screen stay', async () => {
    const page = await liveTab()
    const rows = page.locator('table.where tbody')
    // Numbers and times go on.
    const words = async () => (await rows.innerText()).match(/dead|Connection refused/g)
    expect(await words()).toEqual(['dead', 'Connection refused'])
    const failure = { status: 503, contentType: 'text/html', body: '<!doctype html><main id="main"><h1>Not available</h1></main>' }
    let asked = 0
    await page.route(page.url(), (intercepted) => {
      asked++
      return intercepted.fulfill(failure)
    })
    await runUntil(page, async () => asked > 1, seconds(1))
    expect(await words()).toEqual(['dead', 'Connection refused'])
  })

  test('a row that a newer print has no more keeps its place with the numbers that the state of the queue names', async () => {
    const page = await liveTab()
    const row = page.locator('table.where tbody tr').filter({ hasText: `smtp:${DEAD_HOST}` })
    const cells = async () => (await row.locator('td').allInnerTexts()).map((text) => text.trim())
    const before = await cells()
    await page.route(page.url(), async (asked) => {
      const answer = await asked.fetch()
      await asked.fulfill({ response: answer, body: (await answer.text()).replace(/<tr[^>]*data-renewed="where .*?<\/tr>/s, '') })
    })
    await runUntil(page, async () => (await cells())[0] === '–', seconds(1))
    const [waiting = '', inFlight = ''] = [before[1], before[2]?.split('/')[0]]
    expect(await cells()).toEqual(['–', waiting, inFlight, '–', '–', '–'])
    expect(await row.locator('.bar').count()).toBe(0)
  })

  test('a print without counts leaves the rows of an open screen', async () => {
    const page = await liveTab()
    await page.goto(`${proxy.url}destinations`)
    const row = page.locator('tbody tr').first()
    const cells = () => row.locator('td').allTextContents()
    const before = await cells()
    let prints = 0
    await page.route(page.url(), async (asked) => {
      const answer = await asked.fetch()
      prints++
      const body = (await answer.text()).replace(/<table.*<\/table>/s, '<p class="news" data-state="counting">counting</p>')
      await asked.fulfill({ response: answer, body })
    })
    await runUntil(page, async () => prints > 1, seconds(1))
    expect((await cells())[1]).toBe(before[1])
    expect(await cells()).not.toContain('–')
  })

  test('an open Now renews what needs attention in its place, dates what does not any more, and tells of other conditions', async () => {
    const page = await liveTab()
    const items = page.locator('.attention > li')
    const item = items.filter({ hasText: `smtp:${DEAD_HOST}` })
    const told = page.getByText('What needs attention has changed.')
    const textOf = async () => (await item.textContent())?.replaceAll(/\s+/g, ' ') ?? ''
    await runUntil(page, async () => (await textOf()).includes('does not answer'), seconds(1))
    const names = () => items.evaluateAll((all) => all.map((one) => one.getAttribute('data-renewed')))
    const before = await names()
    const other = await page.context().newPage()
    await other.goto(`${proxy.url}destinations/${encodeURIComponent(`smtp:${DEAD_HOST}`)}/suspend`)
    await other.getByRole('button', { name: 'Suspend' }).click()
    await other.getByRole('link', { name: 'Resume…' }).waitFor()
    await item.getByRole('link', { name: 'Look' }).focus()
    await runUntil(page, async () => (await textOf()).includes('suspended by page:alice'), seconds(1))
    expect([await names(), await told.isVisible(), await page.evaluate('isSameDocument')]).toEqual([before, false, true])
    expect(await item.getByRole('link', { name: 'Look' }).evaluate((element) => element.matches(':focus'))).toBe(true)
    // A print without the item.
    await page.route(page.url(), async (asked) => {
      const answer = await asked.fetch()
      await asked.fulfill({
        response: answer,
        body: (await answer.text()).replace(/<li[^>]*data-renewed="attention destination .*?<\/li>/s, ''),
      })
    })
    await runUntil(page, () => told.isVisible(), seconds(1))
    expect(await textOf()).toMatch(/suspended by page:alice.* as of \d\d:\d\d:\d\d/)
    expect(await names()).toEqual(before)
    await page.unroute(page.url())
    await runUntil(page, async () => !(await told.isVisible()), seconds(1))
    expect(await textOf()).not.toMatch(/as of/)
    await other.getByRole('link', { name: 'Resume…' }).click()
    await other.getByRole('button', { name: 'Resume' }).click()
    await other.getByRole('link', { name: 'Suspend…' }).waitFor()
  })

  test('the causes of an open destination are renewed where nothing below the pointer moves', async () => {
    const page = await liveTab()
    await page.goto(`${proxy.url}destinations/${encodeURIComponent(`smtp:${DEAD_HOST}`)}`)
    const causes = page.locator('[data-fragment=causes]')
    await causes.getByText('Connection refused').first().waitFor()
    let prints = 0
    await page.route(page.url(), async (asked) => {
      const answer = await asked.fetch()
      await asked.fulfill({ response: answer, body: (await answer.text()).replace('Why it waits', `Why it waits, print ${++prints}`) })
    })
    const { x = 0, y = 0, height = 0 } = (await causes.boundingBox()) ?? {}
    await page.mouse.move(x + 5, y + height + 5)
    await runUntil(page, async () => prints > 0, seconds(1))
    await runUntil(page, async () => prints > 1, seconds(1))
    expect(await causes.getByText('print').count()).toBe(0)
    await page.mouse.move(x + 5, y - 5)
    await runUntil(page, () => causes.getByText(/print \d/).isVisible(), seconds(1))
  })

  test('a stream that brings nothing for five seconds counts as cut, also while the server does not answer', async () => {
    const page = await liveTab()
    proxy.state = 'holds streams'
    await page.clock.runFor(seconds(7))
    await page.getByText(/^not live since \d\d:\d\d: asks every 10 s$/).waitFor()
    proxy.state = 'works'
    await untilLive(page)
    expect(proxy.streams.size).toBe(1)
    proxy.state = 'answers nothing'
    await page.clock.runFor(seconds(7))
    await page.getByText('connects again …').waitFor()
    expect(await isStale(page)).toBe(true)
    proxy.state = 'works'
    await untilLive(page)
    expect(await isStale(page)).toBe(false)
  })

  test('a request without an answer counts as failed after ten seconds, on screens with and without a stream', async () => {
    const page = await liveTab()
    proxy.state = 'answers nothing'
    await page.clock.runFor(seconds(7))
    await page.getByText('connects again …').waitFor()
    const unanswered = page.getByText(/^not live since \d\d:\d\d: the server does not answer$/)
    await page.clock.runFor(seconds(10))
    await unanswered.waitFor()
    proxy.state = 'works'
    await untilLive(page)
    await page.goto(`${proxy.url}destinations/${encodeURIComponent(`smtp:${DEAD_HOST}`)}`)
    await expect.poll(() => proxy.streams.size).toBe(0)
    const asked = proxy.requests
    proxy.state = 'answers nothing'
    await page.clock.runFor(seconds(10))
    await expect.poll(() => proxy.requests).toBe(asked + 1)
    await page.clock.runFor(seconds(9))
    expect([await unanswered.isVisible(), await isStale(page)]).toEqual([false, false])
    await page.clock.runFor(seconds(1))
    await unanswered.waitFor()
    expect(await isStale(page)).toBe(true)
    proxy.state = 'works'
    await untilLive(page)
    expect(await isStale(page)).toBe(false)
  })

  test('a hidden tab holds no connection and asks nothing; shown again, it is live', async () => {
    const page = await liveTab()
    expect(proxy.streams.size).toBe(1)
    await show(page, 'hidden')
    await expect.poll(() => proxy.streams.size).toBe(0)
    const asked = [proxy.requests, proxy.screens]
    await page.clock.runFor(seconds(120))
    await queueOne()
    const before = await shownIn(page)
    expect([proxy.requests, proxy.screens, proxy.streams.size]).toEqual([...asked, 0])
    await show(page, 'visible')
    await expect.poll(() => shownIn(page)).toBe(before + 1)
    expect([await isStale(page), proxy.streams.size]).toEqual([false, 1])
    // A screen without a stream asks at intervals.
    await page.goto(`${proxy.url}destinations/${encodeURIComponent(`smtp:${DEAD_HOST}`)}`)
    await expect.poll(() => proxy.streams.size).toBe(0)
    const polled = proxy.requests
    await page.clock.runFor(seconds(11))
    await expect.poll(() => proxy.requests).toBe(polled + 1)
    // Its sentences and rows are renewed from the screen.
    await expect.poll(() => proxy.screens).toBeGreaterThan(asked[1] ?? 0)
    await show(page, 'hidden')
    const screens = proxy.screens
    await page.clock.runFor(seconds(120))
    expect([proxy.requests, proxy.screens]).toEqual([polled + 1, screens])
  })

  test('the tabs of a browser share one stream, which passes to another tab when its tab is hidden or closed', async () => {
    const first = await liveTab()
    const [second, third] = [await first.context().newPage(), await first.context().newPage()]
    const live = (page: Tab) => page.getByText('live', { exact: true }).waitFor()
    for (const page of [second, third]) {
      await page.goto(proxy.url)
      await live(page)
    }
    const follow = async (pages: readonly Tab[]): Promise<void> => {
      const before = await shownIn(second)
      await queueOne()
      for (const page of pages) await expect.poll(() => shownIn(page)).toBe(before + 1)
      await expect.poll(() => proxy.streams.size).toBe(1)
    }
    await follow([first, second, third])
    const asked = proxy.requests
    await show(first, 'hidden')
    await follow([second, third])
    await third.close()
    await follow([second])
    // One request for each stream that began.
    expect(proxy.requests - asked).toBeLessThanOrEqual(2)
    await show(second, 'hidden')
    await expect.poll(() => proxy.streams.size).toBe(0)
  })

  test('after the session has ended, a dialog says so and can be closed, and the login leads back', async () => {
    const own = await PageDaemon.start()
    try {
      await own.send([{ from: 'app@shop.example', to: 'ann@far.example' }])
      const page = await tab()
      await page.goto(`${own.url}login#${await own.code()}`)
      await page.waitForURL(own.url)
      const place = `${own.url}destinations/${encodeURIComponent(`smtp:${DEAD_HOST}`)}`
      await page.goto(place)
      await page.context().clearCookies()
      await page.getByRole('link', { name: 'Suspend…' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText(/Your session has ended/).waitFor()
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      expect([page.url(), await dialog.count()]).toEqual([place, 0])
      await page.getByRole('link', { name: 'Suspend…' }).click()
      await dialog.getByRole('link', { name: 'Log in' }).click()
      await page.getByText(/Your session has ended/).waitFor()
      await page.fill('input[name=code]', await own.code())
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.waitForURL(place)
    } finally {
      await own.close()
    }
  })

  test('while the server does not answer, a dialog says so, and the screen stays with what is checked on it', async () => {
    const page = await tab()
    await page.goto(`${daemon.url}login#${await daemon.code()}`)
    await page.waitForURL(daemon.url)
    await page.goto(`${daemon.url}messages`)
    await page.locator('input[name=id]').first().check()
    await page.route(/operations\/new/, (asked) => asked.abort('connectionrefused'))
    const hold = page.getByRole('button', { name: 'Hold…' })
    await hold.click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('The server does not answer: nothing was changed.').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect([page.url(), await page.locator('input[name=id]:checked').count()]).toEqual([`${daemon.url}messages`, 1])
    await page.unroute(/operations\/new/)
    await hold.click()
    await page.getByRole('heading', { name: 'Hold 1 message?' }).waitFor()
  })

  test('a screen whose session has ended stays, and says so', async () => {
    const page = await liveTab()
    await page.context().clearCookies()
    proxy.cut()
    const notice = page.getByText(/Your session has ended, and these values are not current/)
    await runUntil(page, () => notice.isVisible(), seconds(1))
    expect([page.url(), await isStale(page), await page.evaluate('isSameDocument')]).toEqual([proxy.url, true, true])
    const [above, below] = [await notice.boundingBox(), await page.locator('main > .answer').boundingBox()]
    expect((below?.y ?? 0) - (above?.y ?? 0) - (above?.height ?? 0), 'between the notice and the answer').toBeGreaterThan(10)
    await page.getByRole('link', { name: 'Log in' }).click()
    await page.waitForURL(/login\?ended=1$/)
  })

  test('without locks, such as on plain HTTP to another machine, each tab has a stream', async () => {
    const first = await liveTab()
    const second = await first.context().newPage()
    await second.addInitScript("Object.defineProperty(Navigator.prototype, 'locks', { value: undefined })")
    await second.goto(proxy.url)
    await second.getByText('live', { exact: true }).waitFor()
    await expect.poll(() => proxy.streams.size).toBe(2)
  })

  test('the row under the pointer does not move while values change', async () => {
    const page = await liveTab()
    const row = page.locator('table.where tbody tr, .where table tbody tr').first()
    await row.hover()
    const before = await row.boundingBox()
    const shown = await shownIn(page)
    await daemon.send(Array.from({ length: 8 }, (_, i) => ({ from: 'new@example.org', to: `more${i}@far.example` })))
    await expect.poll(() => shownIn(page)).toBe(shown + 8)
    const after = await row.boundingBox()
    expect([after?.y, after?.height]).toEqual([before?.y, before?.height])
    expect(await row.evaluate((element) => element.matches(':hover'))).toBe(true)
  })

  test('what is below the pointer stays where it is, while rows above it become higher and lower', async () => {
    const page = await liveTab()
    await page.goto(`${proxy.url}destinations`)
    const rows = page.locator('tbody tr')
    const last = rows.last()
    let lines = 0
    await page.route(page.url(), async (asked) => {
      const answer = await asked.fetch()
      const grown = `data-label="State">${'a reason<br />'.repeat(lines)}`
      await asked.fulfill({ response: answer, body: (await answer.text()).replace('data-label="State">', grown) })
    })
    const placeOf = async () => Math.round((await last.boundingBox())?.y ?? 0)
    const heightOf = async () => Math.round((await rows.first().boundingBox())?.height ?? 0)
    await last.hover()
    const [place, height] = [await placeOf(), await heightOf()]
    lines = 9
    await runUntil(page, async () => (await heightOf()) > height + 50, seconds(1))
    const grown = await heightOf()
    // As far as the screen can be scrolled.
    expect(await placeOf()).toBe(place)
    lines = 0
    await runUntil(page, async () => (await rows.first().getByText('a reason').count()) === 0, seconds(1))
    expect([await placeOf(), await heightOf()]).toEqual([place, grown])
    await page.setViewportSize({ width: 1200, height: 700 })
    await expect.poll(heightOf).toBe(height)
  })

  test('a column does not become narrower when a time loses its seconds', async () => {
    const page = await liveTab()
    await page.goto(`${proxy.url}destinations`)
    const time = page.locator('tbody td[data-label="Next"]').first()
    await page.evaluate(`{
      const cell = document.querySelector('tbody td[data-label="Next"]')
      const at = new Date(Number(document.body.dataset.now) + 124_500).toISOString()
      const time = Object.assign(document.createElement('time'), { dateTime: at, textContent: 'in 2m 4s' })
      time.dataset.relative = 'due'
      cell.replaceChildren('a text that is the widest here ', time)
    }`)
    const widths = new Map<string, number>()
    for (let n = 0; n < 8; n++) {
      widths.set((await time.textContent())?.replace(/.*here /, '') ?? '', (await time.boundingBox())?.width ?? 0)
      await page.clock.runFor(seconds(1))
    }
    expect([...widths.keys()]).toEqual(expect.arrayContaining(['in 2m', 'in 2m 1s', 'in 1m 59s']))
    expect(widths.get('in 2m')).toBe(widths.get('in 2m 1s'))
  })

  test('a login link works once and for 60 seconds; neither address nor history has its code', async () => {
    const clock = new VirtualClock()
    const view = { loaded: defaultConfig } as unknown as QueueView
    const { login, routes } = new Page({
      view,
      now: {} as Now,
      causes: {} as Causes,
      senders: {} as Senders,
    })
    const home = route({
      method: 'GET',
      path: '/',
      role: 'viewer',
      handler: ({ requester }) => ({ kind: 'text', status: 200, contentType: 'text/plain', text: `hello ${requester?.name}` }),
    })
    const files = routes.filter(({ path }) => path.startsWith('/static/'))
    const server = await SampleServer.open({ clock, loginPage: login, routes: [home, ...files] })
    try {
      const url = `http://127.0.0.1:${server.port}/`
      const code = server.code()
      const page = await tab()
      await page.goto(`${url}login#${code}`)
      await page.getByText('hello page:alice').waitFor()
      expect(page.url()).toBe(url)
      const session = await page.context().newCDPSession(page)
      const { entries } = await session.send('Page.getNavigationHistory')
      expect(entries.length).toBeGreaterThan(1)
      expect(JSON.stringify(entries)).not.toContain(code)
      const late = server.code()
      const refused = async (link: string): Promise<void> => {
        const other = await tab()
        await other.goto(link)
        await other.getByRole('alert').getByText('The code is unknown, was used already, or is older than 60 seconds.').waitFor()
        expect(other.url()).not.toContain('#')
      }
      await refused(`${url}login#${code}`)
      clock.after(seconds(61), () => undefined)
      while (clock.monotonic() < seconds(61)) clock.runNext()
      await refused(`${url}login#${late}`)
    } finally {
      await server.close()
    }
  })
})
