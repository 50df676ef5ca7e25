/** The page in a real browser: login, dialogs, live values, no violation of the policy, accessibility. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openDaemonClient } from '../../src/cli/queue-client/api-client.ts'
import { newSigningSecret } from '../../src/subscriptions/new-secret.ts'
import { seededRandom } from '../../src/system/random.ts'
import { launchBrowser, noBrowser } from '../support/browser.ts'
import { goldenReport, keepReport } from '../support/domain-reports.ts'
import { HOSTILE_TEXTS } from '../support/hostile-mail.ts'
import { layoutFaults } from '../support/layout-faults.ts'
import { memberOf, PageDaemon } from '../support/page-daemon.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'in Chromium' : `in a browser (skipped: ${noBrowser})`, () => {
  let daemon: PageDaemon
  let browser: Browser
  const contexts: BrowserContext[] = []
  /** Errors of scripts, and violations of the policy. */
  const errors: string[] = []

  beforeAll(async () => {
    browser = await launchBrowser()
    daemon = await PageDaemon.start(
      {
        provider: { google: { mx: ['.google.example', 'aspmx.long-name-of-a-mail-exchanger.example'] } },
        smtpd_sender_hourly_message_limit: 1_000,
      },
      async (folder) => {
        await memberOf('google', folder)
        const { findings, ...report } = goldenReport('expired-policy.example')
        const hostile = HOSTILE_TEXTS.map((text) => ({ what: 'DMARC', verdict: 'wrong' as const, text }))
        await keepReport(folder, 'relay.example', { ...report, findings: [...hostile, ...findings] })
      },
    )
    const mails = Array.from({ length: 12 }, (_, i) => ({
      from: i % 4 === 0 ? 'ann@example.org' : 'news@shop.example',
      to: `customer${i}@far.example`,
    }))
    const client = await openDaemonClient(daemon.queueDirectory)
    const hook = { types: ['schedule.failed'], destinations: ['*.example.org'], senders: ['"><img src=x onerror=alert(1)>"@shop.example'] }
    const secret = newSigningSecret(seededRandom(1))
    const target = { to: 'https://app.example/a/long/path/of/a/webhook?key=0123456789', allowPrivate: false, secret }
    await client?.addSubscription({ name: 'app', ...hook, ...target, format: 'deferd', batch: 1, who: 'root' })
    const rights = { role: 'viewer', content: true, destinations: '*.a-long-name-of-a-destination.example', duration: 1 } as const
    await client?.addToken({ name: 'a-program-with-a-long-name@and.a-domain.example', ...rights, who: 'root' })
    const listed = { scope: '*', reason: 'complaint', text: '<script>x</script>'.repeat(9), duration: null } as const
    await client?.addSuppression({ ...listed, address: '"><img/src=x/onerror=alert(1)>"@a-long-name-of-a-domain.far.example' }, 'root')
    await client?.addSuppression({ ...listed, scope: 'departments-with-long-names.shop.example', address: '@gone.example' }, 'root')
    await client?.close()
    await daemon.send([
      ...mails,
      { from: '"><img src=x onerror=alert(1)>"@shop.example', to: 'x@far.example' },
      {
        from: 'a.very.long.local.part.of.an.address.of.a.program@departments-with-long-names.shop.example',
        to: 'customer@the-mail-of-a-hospital-with-many-departments.clinics.example',
        subject: 'AWordWithoutAnySpace'.repeat(6),
      },
      { from: 'bounces+customer=far.example@shop.example', to: 'firstname.lastname@far.example' },
    ])
  })
  afterAll(async () => {
    await browser.close()
    await daemon.close()
  })
  afterEach(async () => {
    for (const context of contexts.splice(0)) await context.close()
    expect(errors.splice(0)).toEqual([])
  })

  async function loggedIn(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    const context = await browser.newContext(options)
    contexts.push(context)
    const page = await context.newPage()
    page.on('pageerror', (error) => errors.push(error.message))
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text())
    })
    const code = await daemon.code()
    if (options.javaScriptEnabled === false) {
      await page.goto(`${daemon.url}login`)
      await page.fill('input[name=code]', code)
      await page.getByRole('button', { name: 'Log in' }).click()
    } else await page.goto(`${daemon.url}login#${code}`)
    await page.waitForURL(daemon.url)
    return page
  }

  const SCREENS = [
    '',
    'destinations',
    'destinations/smtp%3A%5B127.0.0.1%5D%3A9',
    'messages',
    'history',
    'planner',
    'planner?policy=doubling&other=table(90s,7m,11m,1h,2h,3h,4h)',
    'audit',
    'events',
    'log',
    'nodes',
    'providers',
    'providers/google',
    'settings',
    'webhooks',
    'webhooks/app',
    'webhooks/app/remove',
    'new-webhook',
    'suppressions',
    'suppressions?reason=complaint',
    'new-suppression',
    'suppressions/remove?scope=departments-with-long-names.shop.example&address=%40gone.example',
    'suppressions/resume?scope=shop.example',
    'quotas',
    'shares',
    'quotas/reset?key=a-very-long-name-of-a-sender%40departments-with-long-names.shop.example&quota=app',
    'tokens',
    'tokens/a-program-with-a-long-name@and.a-domain.example/remove',
    'new-token',
    'deliverability',
    'deliverability/relay.example',
    'domain-check',
    'zone',
    'trends',
    'trends?range=24h&split_by=destination',
    'causes',
    'messages?older_than=1s&arrived_after=2026-01-01T10:00',
    'search?q=news',
    'operations/new?operation=hold',
  ]

  test('rows are checked together and by keys; the verbs appear with a choice; ? lists the keys', async () => {
    const page = await loggedIn()
    await page.goto(`${daemon.url}messages`)
    const verbs = page.locator('.actions[role=group] .buttons')
    expect(await verbs.isVisible()).toBe(false)
    await page.getByLabel('Select all messages on this page').check()
    const rows = await page.locator('input[name=id]').count()
    expect(await page.locator('input[name=id]:checked').count()).toBe(rows)
    expect(await verbs.isVisible()).toBe(true)
    await page.getByLabel('Select all messages on this page').uncheck()
    expect(await verbs.isVisible()).toBe(false)
    await page.locator('main').focus()
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    expect(await page.locator('input[name=id]').first().isChecked()).toBe(true)
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).getByText('next and previous row').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('h')
    await page.waitForURL(/\/history$/)
  })

  test('the link of the login leaves no code in the address or the history', async () => {
    const page = await loggedIn()
    expect(page.url()).toBe(daemon.url)
    await page.goBack()
    expect(page.url()).not.toContain('#')
  })

  for (const javaScriptEnabled of [true, false])
    test(`the mail of a sender is found, held and released ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      const page = await loggedIn({ javaScriptEnabled })
      await page.getByRole('link', { name: 'Messages' }).click()
      await page.locator('.senders').getByRole('link', { name: 'news@shop.example' }).click()
      await page.getByLabel('all 9 that match').check()
      await page.getByRole('button', { name: 'Hold…' }).click()
      await page.getByRole('heading', { name: 'Hold 9 messages?' }).waitFor()
      await page.getByLabel(/Reason/).fill('compromised')
      await page.getByRole('button', { name: 'Hold 9 messages' }).click()
      await page.getByText('9 messages were put on hold.').waitFor()
      await page.getByRole('button', { name: 'Undo' }).click()
      await page.getByText('9 messages were released.').waitFor()
    })

  test('without scripts, the dialogue of an attempt is two clicks from the list of messages', async () => {
    const page = await loggedIn({ javaScriptEnabled: false })
    await page.goto(`${daemon.url}messages`)
    await page.locator('table a[href*="messages/"]').first().click()
    await page.getByRole('link', { name: 'Show the dialogue' }).click()
    await page.getByText('cannot connect: Connection refused').waitFor()
    expect(await page.locator('.as-command code').first().textContent()).toMatch(/^deferd queue show \w+ --session=[0-9a-f]{16}$/)
  })

  for (const javaScriptEnabled of [true, false])
    test(`a token is added, shown once and removed ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      const page = await loggedIn({ javaScriptEnabled, viewport: { width: 320, height: 900 } })
      await page.goto(`${daemon.url}tokens`)
      await page.getByRole('link', { name: 'Add…' }).click()
      const name = `ci-${javaScriptEnabled ? 'with' : 'without'}`
      await page.getByLabel('Name').fill(name)
      await page.getByRole('button', { name: 'Add the token' }).click()
      const shown = page.locator('[data-secret] code')
      const token = (await shown.textContent()) ?? ''
      expect(token).toMatch(/^dfd_\w{49}$/)
      expect(page.url()).toBe(`${daemon.url}new-token`)
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
      if (javaScriptEnabled) expect(await problemsOf(page)).toEqual([])
      await page.getByRole('link', { name: 'Tokens', exact: true }).last().click()
      await page.getByRole('heading', { name: 'Tokens' }).waitFor()
      expect(await page.content()).not.toContain(token)
      // Neither the cache of the browser nor its list of screens has the token.
      const session = await page.context().newCDPSession(page)
      expect(JSON.stringify(await session.send('Page.getNavigationHistory'))).not.toContain(token)
      await page.goBack().catch(() => null)
      await expect.poll(() => page.content().catch(() => token)).not.toContain(token)
      await page.goto(`${daemon.url}tokens`)
      await page.getByRole('row').filter({ hasText: name }).getByRole('link', { name: 'Remove…' }).click()
      await page.getByRole('button', { name: `Remove ${name}` }).click()
      await expect.poll(() => page.getByRole('row').filter({ hasText: name }).count()).toBe(0)
    })

  test('a word that may be broken is whole in the names of links and of rows', async () => {
    const page = await loggedIn({ viewport: { width: 320, height: 900 } })
    const session = await page.context().newCDPSession(page)
    for (const [path, name] of [
      ['destinations', 'smtp:[127.0.0.1]:9'],
      ['tokens', 'a-program-with-a-long-name@and.a-domain.example'],
    ] as const) {
      await page.goto(daemon.url + path)
      const { nodes } = await session.send('Accessibility.getFullAXTree')
      expect(nodes.map(({ name: one }): unknown => one?.value)).toContain(name)
    }
  })

  test('a screen that the browser leaves has its secret no more', async () => {
    const page = await loggedIn()
    await page.goto(`${daemon.url}webhooks/app/secret`)
    await page.getByRole('button', { name: 'Make a new secret' }).click()
    await page.getByText(/^whsec_/).waitFor()
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    expect(await page.locator('[data-secret]').textContent()).toBe('The secret was shown once.')
    expect(await page.content()).not.toContain('whsec_')
  })

  test('a dialog, its focus and its text stay while live values change, and Escape closes it', async () => {
    const page = await loggedIn()
    await page.goto(`${daemon.url}destinations/smtp%3A%5B127.0.0.1%5D%3A9`)
    const suspend = page.getByRole('link', { name: 'Suspend…' })
    await suspend.click()
    const reason = page.getByLabel(/Reason/)
    await reason.fill('half a sen')
    const waiting = page.locator('[data-live=waiting]')
    const before = Number(await waiting.textContent())
    await daemon.send([{ from: 'new@example.org', to: 'new@far.example' }])
    // The page asks at once when its tab is shown again.
    await expect
      .poll(
        async () => {
          await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
          return Number(await waiting.textContent())
        },
        // An answer that takes longer is ignored, since the page has asked again.
        { interval: 1_000 },
      )
      .toBe(before + 1)
    expect(await page.locator('dialog[open]').count()).toBe(1)
    expect(await reason.inputValue()).toBe('half a sen')
    expect(await reason.evaluate((element) => element.matches(':focus'))).toBe(true)
    await page.keyboard.press('Escape')
    // The browser closes the dialog after the key, in a task of its own.
    await expect.poll(() => page.locator('dialog').count()).toBe(0)
    expect(await suspend.evaluate((element) => element.matches(':focus'))).toBe(true)
  })

  test('a dry run that takes long says so, and Cancel ends it', async () => {
    const page = await loggedIn()
    await page.goto(`${daemon.url}messages?sender=news@shop.example`)
    const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
    await page.route(/operations\/new/, async (asked) => {
      await released
      await asked.continue().catch(() => undefined)
    })
    const plan = async (): Promise<void> => {
      await page.getByLabel(/all .* that match/).check()
      await page.getByRole('button', { name: 'Hold…' }).click()
      await page.getByText('Loading …').waitFor()
    }
    await plan()
    await page.locator('dialog').getByRole('button', { name: 'Cancel' }).click()
    await expect.poll(() => page.locator('dialog').count()).toBe(0)
    await plan()
    release(undefined)
    await page.getByRole('heading', { name: /^Hold \d+ messages\?$/ }).waitFor()
    expect(await page.locator('dialog').count()).toBe(1)
    expect(await page.locator('dialog :focus').count()).toBe(1)
    await page.keyboard.press('Escape')
    await expect.poll(() => page.locator('dialog').count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Hold…' }).evaluate((element) => element.matches(':focus'))).toBe(true)
  })

  test('live values change as text, and Pause stops them', async () => {
    const page = await loggedIn()
    const deferred = page.locator('.queues [data-live="queues/deferred/messages"]')
    await page.getByText('live', { exact: true }).waitFor()
    const before = Number(await deferred.textContent())
    await daemon.send([{ from: 'new@example.org', to: 'newer@far.example' }])
    await expect.poll(async () => Number(await deferred.textContent())).toBeGreaterThan(before)
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByText(/^paused at/).waitFor()
  })

  test('an open screen has the present state in its sentences and rows, without being loaded again', async () => {
    const page = await loggedIn()
    const row = page.locator('table.where tbody tr').filter({ hasText: 'smtp:[127.0.0.1]:9' })
    await page.getByText('live', { exact: true }).waitFor()
    const place = `destinations/${encodeURIComponent('smtp:[127.0.0.1]:9')}`
    const other = await page.context().newPage()
    await other.goto(`${daemon.url}${place}`)
    await other.getByText('live', { exact: true }).waitFor()
    for (const one of [page, other]) await one.evaluate("document.body.dataset.kept = 'yes'")
    const third = await page.context().newPage()
    await third.goto(`${daemon.url}${place}/suspend`)
    await third.getByRole('button', { name: 'Suspend' }).click()
    await expect.poll(() => row.textContent(), { timeout: 60_000, interval: 500 }).toContain('suspended')
    await expect.poll(() => other.locator('h1').textContent(), { timeout: 60_000, interval: 500 }).toContain('suspended')
    expect(await other.locator('.about').textContent()).toMatch(/^Suspended\s+by page:alice/)
    await third.getByRole('link', { name: 'Resume…' }).click()
    await third.getByRole('button', { name: 'Resume' }).click()
    await expect.poll(() => other.locator('h1').textContent(), { timeout: 60_000, interval: 500 }).not.toContain('suspended')
    for (const one of [page, other]) expect(await one.evaluate('document.body.dataset.kept')).toBe('yes')
  }, 180_000)

  test('the audit log tells of newer actions, and leaves its rows where they are', async () => {
    const page = await loggedIn()
    await page.goto(`${daemon.url}audit`)
    const rows = await page.locator('tbody tr').count()
    const other = await page.context().newPage()
    await other.goto(`${daemon.url}destinations/${encodeURIComponent('smtp:[127.0.0.1]:9')}/suspend`)
    await other.getByRole('button', { name: 'Suspend' }).click()
    await other.getByRole('link', { name: 'Resume…' }).click()
    await other.getByRole('button', { name: 'Resume' }).click()
    await other.getByRole('link', { name: 'Suspend…' }).waitFor()
    await expect
      .poll(
        async () => {
          await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
          return page.getByText('There are newer actions.').isVisible()
        },
        { interval: 1_000 },
      )
      .toBe(true)
    expect(await page.locator('tbody tr').count()).toBe(rows)
    await page.getByRole('link', { name: 'Show them' }).click()
    await expect.poll(() => page.locator('tbody tr').count()).toBe(rows + 2)
  })

  for (const [colorScheme, width] of [
    ['light', 320],
    ['dark', 375],
    ['light', 768],
    ['dark', 1024],
    ['dark', 1440],
  ] as const)
    test(
      `no screen has an accessibility problem or a fault of its layout at ${width} pixels, ${colorScheme}`,
      { timeout: 900_000 },
      async () => {
        const page = await loggedIn({ colorScheme, viewport: { width, height: 2400 } })
        const linked = async (place: string, selector: string): Promise<string> => {
          await page.goto(daemon.url + place)
          const link = page.locator(selector).first()
          return new URL((await link.getAttribute('href')) ?? '', page.url()).href.slice(daemon.url.length)
        }
        const message = await linked('messages', 'table a[href*="messages/"]')
        const dialogue = await linked(message, 'main a[href*="/sessions/"]')
        const contents = [await linked(message, 'main a[href*="show=headers"]'), await linked(message, 'main a[href*="show=source"]')]
        await page.goto(`${daemon.url}operations/new?operation=hold&scope=ids&id=${message.replace('messages/', '')}`)
        await page.getByRole('button', { name: 'Hold 1 message' }).click()
        await page.getByRole('button', { name: 'Undo' }).click()
        await page.getByText('1 message was released.').waitFor()
        const operation = await linked('audit', 'main a[href*="operations/"]')
        for (const path of [...SCREENS, message, dialogue, ...contents, operation, 'login']) {
          await page.goto(daemon.url + path)
          expect(await layoutFaults(page), path).toEqual([])
          expect(await problemsOf(page), path).toEqual([])
        }
        await page.goto(`${daemon.url}destinations/smtp%3A%5B127.0.0.1%5D%3A9`)
        await page.getByRole('link', { name: 'Suspend…' }).click()
        await page.locator('dialog[open]').waitFor()
        expect(await problemsOf(page), 'a dialog').toEqual([])
      },
    )

  /** Violations of WCAG 2.2, levels A and AA. */
  async function problemsOf(page: Page): Promise<unknown> {
    await page.evaluate(AXE)
    return page.evaluate(
      `axe.run({ runOnly: ${JSON.stringify(TAGS)} }).then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 160))]))`,
    )
  }

  test('a check box that is half below the bar of operations keeps its distance from the choices of the bar', async () => {
    const page = await loggedIn({ viewport: { width: 1024, height: 620 } })
    await page.goto(`${daemon.url}messages`)
    await page.locator('.actions input[value=filter]').check()
    const half = "[...document.querySelectorAll('input[name=id]')].at(-4).getBoundingClientRect()"
    const bar = "document.querySelector('.actions[role=group]').getBoundingClientRect().top"
    for (const below of [2, 6, 10]) {
      await page.evaluate('scrollTo(0, 0)')
      // At the beginning of the list, the bar is below the first row and not yet at the edge of the window.
      for (let n = 0; n < 2; n++) await page.evaluate(`scrollBy(0, ${half}.top + ${below} - ${bar})`)
      expect(await page.evaluate<number>(`${bar} - ${half}.top`), 'half below').toBeCloseTo(below, 0)
      expect(JSON.stringify(await problemsOf(page)), String(below)).not.toContain('type=\\"checkbox')
    }
  })

  /** Presses Tab until an element of the selector has the focus. */
  async function tabTo(page: Page, selector: string): Promise<void> {
    for (let pressed = 0; pressed < 150; pressed++) {
      await page.keyboard.press('Tab')
      if (await page.evaluate<boolean>(`document.activeElement.matches(${JSON.stringify(selector)})`)) return
    }
    throw new Error(`Tab does not lead to ${selector}`)
  }

  test('the keyboard alone leads from Now to a finished hold', async () => {
    const page = await loggedIn()
    await tabTo(page, 'nav a[href$="messages"]')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Messages', exact: true }).waitFor()
    await tabTo(page, 'input[name=id]')
    await page.keyboard.press('Space')
    await tabTo(page, 'button[value=hold]')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Hold 1 message?' }).waitFor()
    await tabTo(page, 'dialog button[type=submit]')
    await page.keyboard.press('Enter')
    await page.getByText('1 message was put on hold.').waitFor()
    await tabTo(page, 'form[action*="undo"] button')
    await page.keyboard.press('Enter')
    await page.getByText('1 message was released.').waitFor()
  })

  test('the keyboard alone ends an incident: found, suspended, on hold, undone and resumed', async () => {
    const page = await loggedIn()
    const press = async (selector: string): Promise<void> => {
      await tabTo(page, selector)
      await page.keyboard.press('Enter')
    }
    await press('table.where a[href*="destinations/"]')
    await page.getByRole('heading', { name: 'Why it waits' }).waitFor()
    await press('a[href$="/suspend"]')
    await page.getByRole('heading', { name: /^Suspend / }).waitFor()
    await press('dialog button[type=submit]')
    await page.getByText('Suspended by page:alice').waitFor()
    await press('a[href*="operation=hold"][href*="sender=news"]')
    await page.getByRole('heading', { name: /^Hold \d+ messages\?$/ }).waitFor()
    await press('dialog button[type=submit]')
    await page.getByText(/messages were put on hold/).waitFor()
    await press('form[action*="undo"] button')
    await page.getByText(/messages were released/).waitFor()
    await press('main a[href*="destinations/"]')
    await page.getByRole('link', { name: 'Resume…' }).waitFor()
    await press('a[href$="/resume"]')
    await page.getByRole('heading', { name: /^Resume / }).waitFor()
    await press('dialog button[type=submit]')
    await page.getByRole('link', { name: 'Suspend…' }).waitFor()
  })

  test('the page of an empty queue shows mail that comes', async () => {
    const empty = await PageDaemon.start()
    const context = await browser.newContext()
    contexts.push(context)
    try {
      const page = await context.newPage()
      await page.goto(`${empty.url}login#${await empty.code()}`)
      await page.getByText('Mail queue is empty').waitFor()
      await empty.send([{ from: 'new@example.org', to: 'ann@far.example' }])
      await page.getByRole('heading', { name: 'Where it waits' }).waitFor()
      // A row whose mail has left stays, and says nothing of a next attempt.
      const next = page.locator('table.where tbody tr').first().locator('[data-label^=Next]')
      await expect.poll(() => next.textContent(), { timeout: 30_000 }).not.toBe('–')
      const other = await context.newPage()
      await other.goto(`${empty.url}operations/new?operation=delete&scope=all`)
      await other.getByRole('button', { name: 'Delete 1 message' }).click()
      await expect.poll(() => next.textContent(), { timeout: 60_000, interval: 500 }).toBe('–')
    } finally {
      await context.close()
      await empty.close()
    }
  }, 120_000)

  test('the values of a chart are read by arrow keys, and in a table without scripts', async () => {
    const page = await loggedIn()
    await page.goto(`${daemon.url}planner`)
    const drawing = page.locator('.plot svg[tabindex]').first()
    await drawing.focus()
    await page.keyboard.press('End')
    const reading = page.locator('.plot output').first()
    const last = await reading.textContent()
    expect(last).toMatch(/^\S+.* · doubling: \S+/)
    await page.keyboard.press('ArrowLeft')
    await expect.poll(() => reading.textContent()).not.toBe(last)
    const plain = await loggedIn({ javaScriptEnabled: false })
    await plain.goto(`${daemon.url}planner`)
    await plain.getByText('Values').first().click()
    expect(await plain.locator('.values[open] tbody tr').count()).toBeGreaterThan(10)
  })

  test('the chart of Now goes on when an interval has ended, and not while its values are read', async () => {
    const context = await browser.newContext()
    contexts.push(context)
    const page = await context.newPage()
    await page.clock.install()
    const asked: string[] = []
    page.on('request', (request) => {
      if (request.url().includes('charts/flow')) asked.push(request.url())
    })
    await page.goto(`${daemon.url}login#${await daemon.code()}`)
    await page.waitForURL(daemon.url)
    await page.locator('[data-chart]').waitFor()
    await page.evaluate('document.querySelector("[data-chart]").classList.add("first")')
    await page.clock.fastForward(63_000)
    await expect.poll(() => asked.length).toBe(1)
    // The policy of the page would block a chart that is parsed from a text.
    await expect.poll(() => page.locator('[data-chart]:not(.first)').count()).toBe(1)
    await page.locator('[data-chart]').hover()
    await page.clock.fastForward(120_000)
    expect(asked).toHaveLength(1)
  })

  test('the zone is chosen in a dialog, and names the times of the page', async () => {
    const page = await loggedIn({ timezoneId: 'America/New_York' })
    await page.goto(`${daemon.url}history`)
    await page.locator('footer a[href*="zone"]').click()
    await page.getByRole('combobox', { name: 'Zone' }).selectOption('Asia/Tokyo')
    await page.getByRole('button', { name: 'Show times in it' }).click()
    await page.getByRole('link', { name: 'UTC+9' }).waitFor()
    expect(page.url()).toBe(`${daemon.url}history`)
    await page.goto(daemon.url)
    await page.getByRole('button', { name: 'Pause' }).click()
    const tokyo = new Date(Date.now() + 9 * 3_600_000).toISOString().slice(11, 13)
    expect(await page.locator('[data-live-state]').textContent()).toContain(`paused at ${tokyo}:`)
  })

  test('below 64rem a reply has a line of its own, as wide as the table, and opens to its whole text', async () => {
    const page = await loggedIn({ viewport: { width: 768, height: 1024 }, javaScriptEnabled: false })
    await page.goto(`${daemon.url}messages`)
    const row = page.locator('table.messages tbody tr').first()
    const reply = row.locator('td.reply')
    const [outer, inner] = [await row.boundingBox(), await reply.boundingBox()]
    expect(inner?.width).toBeGreaterThan((outer?.width ?? 0) - 8)
    const said = reply.locator('.said')
    expect(await said.textContent()).toMatch(/^\S/)
    await reply.locator('summary').click()
    expect(await reply.locator('p').isVisible()).toBe(true)
  })

  for (const javaScriptEnabled of [true, false])
    test(`on a phone the head is one line, and the screens open from it ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      const page = await loggedIn({ viewport: { width: 320, height: 640 }, javaScriptEnabled })
      expect((await page.locator('body > header').boundingBox())?.height).toBeLessThan(60)
      await page.getByRole('button', { name: 'Menu' }).click()
      await page.getByRole('link', { name: 'History' }).click()
      await page.getByRole('heading', { name: 'History' }).waitFor()
      await page.getByRole('searchbox').fill('customer0@far.example')
      await page.keyboard.press('Enter')
      await page.waitForURL(/\/messages\/\w+$/)
    })

  for (const javaScriptEnabled of [true, false])
    test(`all screens open from the head, at all widths ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      const page = await loggedIn({ javaScriptEnabled })
      const links = page.locator('header nav a')
      for (const width of [320, 375, 640, 641, 768, 1024, 1088, 1089, 1440, 1920]) {
        await page.setViewportSize({ width, height: 640 })
        const shown = new Set<string>()
        for (const [opener, screen] of [
          [/^Menu/, 'messages'],
          [/^System/, 'planner'],
        ] as const) {
          await page.goto(daemon.url + screen)
          expect(await page.locator('body > header').evaluate((head) => head.clientHeight), String(width)).toBeLessThan(110)
          const button = page.getByRole('button', { name: opener })
          if (await button.isVisible()) await button.click()
          for (const link of await links.all())
            if (await link.isVisible()) {
              const box = await link.boundingBox()
              expect([width, (box?.x ?? -1) >= 0 && (box?.x ?? 0) + (box?.width ?? 0) <= width]).toEqual([width, true])
              shown.add((await link.getAttribute('href')) ?? '')
            }
          expect(await page.locator('nav [aria-current=page]').getAttribute('href'), String(width)).toBe(`./${screen}`)
        }
        expect(shown.size, String(width)).toBe(await links.count())
      }
    })

  test('the time of a range is visible beside its date, at all widths', async () => {
    const page = await loggedIn()
    for (const width of [320, 375, 768, 1024, 1440, 1920]) {
      await page.setViewportSize({ width, height: 640 })
      for (const screen of ['messages', 'history', 'audit', 'events']) {
        await page.goto(daemon.url + screen)
        for (const field of await page.locator('.filter input[type=datetime-local]').all())
          // The text and the button of Chromium take 200 px.
          expect([screen, width, ((await field.boundingBox())?.width ?? 0) > 215]).toEqual([screen, width, true])
      }
    }
  })

  test('the key / leads to the search', async () => {
    const page = await loggedIn()
    await page.keyboard.press('/')
    await page.keyboard.type('customer0@far.example')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/messages\/\w+$/)
  })
})
