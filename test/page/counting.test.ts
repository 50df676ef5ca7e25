/** A screen is shown before the queue, or the mail of a destination, is counted, and follows when that is done. */
import type { Clock } from '../../src/system/clock.ts'
import { WallView } from '../../src/system/wall-view.ts'
import type { Browser, Page as Tab } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Causes } from '../../src/queries/counts/causes.ts'
import { Senders } from '../../src/queries/counts/senders.ts'
import { Now } from '../../src/queries/now.ts'
import type { QueueView } from '../../src/queries/queue-view.ts'
import { destinationRoutes } from '../../src/api/destination-routes.ts'
import { messageRoutes } from '../../src/api/message-routes.ts'
import { statusRoutes } from '../../src/api/status-routes.ts'
import { figuresMissing } from '../../src/page/screens/counting-screen.ts'
import { Page } from '../../src/page/web-page.ts'
import { realClock } from '../support/real-clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { launchBrowser, noBrowser } from '../support/browser.ts'
import { SampleServer } from '../support/web-server.ts'

/** The same object with other members. */
const replaced = <T extends object>(object: T, members: Partial<T>): T =>
  new Proxy(object, {
    get: (target, name) => (Object.hasOwn(members, name) ? Reflect.get(members, name) : Reflect.get(target, name)) as unknown,
  })

/** A queue whose counts are known when `counted` is called. */
function uncounted(view: QueueView): { readonly view: QueueView; readonly counted: () => void } {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const { live, reader } = view
  const slow: QueueView = replaced(view, {
    clock: realClock,
    live: replaced(live, { brief: () => promise.then(() => live.brief()) }),
    reader: replaced(reader, { causes: (page) => promise.then(() => reader.causes(page)) }),
  })
  return { view: slow, counted: () => resolve(undefined) }
}

/** Counts while a person fills a form in a dialog, which stays until it is closed. */
async function countedAtWork(tab: Tab, counted: () => void): Promise<void> {
  await tab.getByRole('link', { name: 'Suspend…' }).click()
  await tab.getByLabel(/Reason/).fill('half a sen')
  // The second answer comes after the page has seen the first one.
  let answers = 0
  const answered = tab.waitForResponse((response) => response.url().endsWith('/causes') && ++answers === 2)
  counted()
  await answered
  expect(await tab.getByLabel(/Reason/).inputValue()).toBe('half a sen')
  await tab.keyboard.press('Escape')
}

test('figures that are not read while the relay cannot commit are not said to be counted', () => {
  const calm = figuresMissing({ health: { state: 'slow', text: 'commits in 900 ms' } })
  expect(calm).toContain('The queue is being counted')
  expect(figuresMissing({ health: { state: 'failing', text: 'no commit within 2 s' } })).toBe(
    'These figures cannot be read: no commit within 2 s. They follow by themselves.',
  )
})

test('the last figures are shown for ten seconds while new ones are late', async () => {
  const world = await ApiWorld.open('memory')
  try {
    await world.fill(1)
    const { view } = world.api.api
    let [passed, isLate] = [0, false]
    const clock: Clock = {
      wall: new WallView(() => realClock.now() + passed),
      now: () => realClock.now() + passed,
      monotonic: () => realClock.monotonic() + passed,
      after: (delay, action) => realClock.after(delay, action),
      alarm: (at, action) => realClock.alarm(at, action),
      zone: (at) => realClock.zone(at),
    }
    const brief = () => (isLate ? new Promise<never>(() => undefined) : view.live.brief())
    const now = new Now(replaced(view, { clock, live: replaced(view.live, { brief }) }))
    const shown = () => now.within(isLate ? 20 : 10_000, null, new AbortController().signal)
    const first = await shown()
    expect(first?.queues).toMatchObject([{ queue_name: 'deferred', messages: 1 }])
    isLate = true
    passed = 2_000
    expect(await shown()).toEqual(first)
    passed = 11_000
    expect(await shown()).toBeUndefined()
  } finally {
    await world.close()
  }
})

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'in Chromium' : `in a browser (skipped: ${noBrowser})`, () => {
  let browser: Browser
  let world: ApiWorld
  beforeAll(async () => {
    browser = await launchBrowser()
    world = await ApiWorld.open('memory')
    await world.fill(3)
  })
  afterAll(async () => {
    await browser.close()
    await world.close()
  })

  test('a click while the counts follow leads where it should, and nothing is loaded again', async () => {
    const { view, counted } = uncounted(world.api.api.view)
    const [now, causes] = [new Now(view), new Causes(view)]
    const page = new Page({ view, now, causes, senders: new Senders(view) })
    const server = await SampleServer.open({
      routes: [...page.routes, ...statusRoutes(now), ...messageRoutes(view, new Senders(view)), ...destinationRoutes(view, causes)],
      loginPage: page.login,
    })
    const context = await browser.newContext()
    try {
      const url = `http://127.0.0.1:${server.port}/`
      const [name = '', value = ''] = (await server.cookie()).split('=')
      await context.addCookies([{ name, value, url }])
      const tab = await context.newPage()
      await tab.goto(`${url}destinations/a.example.org`)
      await tab.evaluate('globalThis.isSameDocument = true')
      counted()
      await tab.getByText('Example', { exact: true }).first().waitFor()
      expect(await tab.evaluate('isSameDocument')).toBe(true)

      const again = uncounted(world.api.api.view)
      const slow = new Page({
        view: again.view,
        now: new Now(again.view),
        causes: new Causes(again.view),
        senders: new Senders(again.view),
      })
      const late = await SampleServer.open({
        routes: [...slow.routes, ...destinationRoutes(again.view, new Causes(again.view))],
        loginPage: slow.login,
      })
      try {
        const other = `http://127.0.0.1:${late.port}/`
        const [cookie = '', session = ''] = (await late.cookie()).split('=')
        await context.addCookies([{ name: cookie, value: session, url: other }])
        await tab.goto(`${other}destinations/a.example.org`)
        await tab.getByText(/causes are being counted/).waitFor()
        // The next screen is slow: the counts are known meanwhile.
        await context.route('**/messages*', async (route) => {
          await new Promise((resolve) => setTimeout(resolve, 3_000))
          await route.continue()
        })
        const arrived = tab.waitForURL(/\/messages/)
        await tab.locator('header').getByRole('link', { name: 'Messages' }).click({ noWaitAfter: true })
        again.counted()
        await arrived
        await tab.getByRole('heading', { name: 'Messages', level: 1 }).waitFor()
      } finally {
        await late.close()
      }
    } finally {
      await context.close()
      now.close()
      await server.close()
    }
  })

  for (const [path, notice, shown, javaScriptEnabled] of [
    ['', /The queue is being counted/, 'Where it waits', true],
    ['destinations', /The queue is being counted/, 'Recipients', false],
    ['destinations/a.example.org', /causes are being counted/, 'Example', true],
  ] as const)
    test(`/${path} ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      const { view, counted } = uncounted(world.api.api.view)
      const [now, causes] = [new Now(view), new Causes(view)]
      const page = new Page({ view, now, causes, senders: new Senders(view) })
      const server = await SampleServer.open({
        routes: [...page.routes, ...statusRoutes(now), ...messageRoutes(view, new Senders(view)), ...destinationRoutes(view, causes)],
        loginPage: page.login,
      })
      const context = await browser.newContext({ javaScriptEnabled })
      try {
        const url = `http://127.0.0.1:${server.port}/`
        const [name = '', value = ''] = (await server.cookie()).split('=')
        await context.addCookies([{ name, value, url }])
        const tab = await context.newPage()
        await tab.goto(url + path)
        await tab.getByText(notice).waitFor()
        expect(await tab.getByText(shown, { exact: true }).count()).toBe(0)
        if (!path.includes('/')) counted()
        else await countedAtWork(tab, counted)
        await tab.getByText(shown, { exact: true }).first().waitFor()
        expect(await tab.getByText(notice).count()).toBe(0)
        if (path.includes('/'))
          expect(await tab.locator('.answer').innerText()).toContain('3 recipients wait for 450 4.2.1 busy, try later.')
      } finally {
        await context.close()
        now.close()
        await server.close()
      }
    })
})
