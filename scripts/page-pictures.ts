/**
 * Draws the pictures of docs/page.md into docs/images/page: every screen of the page at three widths, light and dark, from a run of the
 * relay in virtual time. Run it with Chromium after a change of a screen: `node scripts/page-pictures.ts`. The fonts are those of the
 * machine; all else is the same in each run. With names of screens, only their pictures are drawn: `node scripts/page-pictures.ts events`. With
 * `--check` it writes nothing, and fails when a picture has changed.
 */
import { SubscriptionChanges } from '../src/subscriptions/subscription-changes.ts'
import { AccessEntries } from '../src/access/access-entries.ts'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { chromium, type Browser, type Page as Tab, type Route as Intercepted } from 'playwright-core'
import { configFrom } from '../src/config/load.ts'
import { queueApi } from '../src/daemon/queue-api.ts'
import { QueueSeries } from '../src/daemon/upkeep/queue-series.ts'
import { matchRoute } from '../src/http/route-table.ts'
import { Page } from '../src/page/web-page.ts'
import { queueIdOf } from '../src/mail/message.ts'
import { ANY_MESSAGE } from '../src/store/message-conditions.ts'
import { createObservedWorld } from '../src/testkit/create-world.ts'
import type { World } from '../src/testkit/world.ts'
import { withPalette } from './palette-png.ts'

const FOLDER = join(import.meta.dirname, '../docs/images/page')
const BROWSER = process.env['DEFERD_TEST_BROWSER'] ?? '/usr/bin/chromium-headless-shell'
/** Any origin: the browser asks this process, not a network. */
const ORIGIN = 'http://page.example'
/** Options of Chromium without which edges of letters and lines differ from run to run on a busy machine. */
const EXACT = [
  '--disable-gpu',
  '--num-raster-threads=1',
  '--disable-partial-raster',
  '--disable-checker-imaging',
  '--disable-lcd-text',
  '--force-color-profile=srgb',
]
const SIZES = [
  { width: 360, height: 740 },
  { width: 1024, height: 768 },
  { width: 1920, height: 1080 },
]
const SETTINGS = {
  myhostname: 'relay.example',
  delay_warning_time: ['4h'],
  provider: {
    mailhost: { mx: ['.mail.example'], provider_concurrency_limit: 5 },
    posthost: { mx: ['.post.example', '.isp.example'] },
  },
  schedule: {
    'retry-partners': { at: '0 */2 * * *', do: 'flush', destinations: ['post.example'] },
    'morning-report': { at: '30 7 * * 1-5', zone: 'Europe/Berlin', do: 'report', notify: 'postmaster@shop.example' },
  },
}

/** Mail of a shop: one provider limits the rate, another greylists, a third does not answer, the rest accepts. */
async function shopWorld(): Promise<World> {
  const world = await createObservedWorld({ seed: 5, config: SETTINGS }, {})
  world
    .destination('mail.example')
    .defers('*', '421 4.7.28 [192.0.2.1] Unusual rate of mail from your IP address; see https://mail.example/limits. 98si12c55 - mx1')
  world.destination('post.example').defers('*', '451 4.7.1 Greylisted, see https://post.example/greylisting')
  world.destination('closed.example').isDown()
  world.destination('full.example').rejects('*', '552 5.2.2 Mailbox full')
  await subscribe(world)
  const { clock, store, relayEvents: events } = world
  new QueueSeries({ clock, store, events, node: () => 'relay.example' }).start()
  const transport = createTransport(world.transport())
  const send = (from: string, to: string, subject: string) =>
    transport.sendMail({
      from,
      to,
      subject,
      date: new Date(world.now()),
      messageId: `<${subject.replaceAll(' ', '-')}@shop.example>`,
      text: subject,
    })
  for (let round = 0; round < 24; round++) {
    await send('orders@shop.example', `customer${round}@isp.example`, `order ${round}`)
    await send('news@shop.example', `reader${round}@mail.example`, `news ${round}`)
    if (round % 3 === 0) await send('orders@shop.example', `buyer${round}@post.example`, `invoice ${round}`)
    if (round % 4 === 0) await send('orders@shop.example', `firm${round}@closed.example`, `offer ${round}`)
    if (round % 8 === 0) await send('news@shop.example', `lost${round}@full.example`, `letter ${round}`)
    await world.advance('5m')
  }
  return world
}

async function idAt(world: World, destination: string): Promise<string> {
  const [found] = await world.reader.list({ ...ANY_MESSAGE, destination }, { after: 0, limit: 1 })
  if (found === undefined) throw new Error(`no mail waits for ${destination}`)
  return queueIdOf(found.message)
}

const requester = { name: 'page:alice', role: 'admin', content: true, destinations: null, address: '127.0.0.1', requestId: 'r' } as const

/** Answers requests of the browser with the routes of the page. */
function answers(page: Page): (intercepted: Intercepted) => Promise<void> {
  const { routes } = page
  return async (intercepted) => {
    const url = new URL(intercepted.request().url())
    const match = matchRoute(routes, 'GET', url.pathname)
    if (match.kind !== 'found') return intercepted.fulfill({ status: 404 })
    const answer = await match.route.handler({
      parameters: match.parameters,
      query: url.searchParams,
      headers: {},
      body: undefined,
      requester,
      client: { address: '127.0.0.1', scheme: 'http', host: url.host, user: null },
      signal: new AbortController().signal,
    })
    if (answer.kind !== 'text') throw new Error(`${url.pathname} has no text`)
    await intercepted.fulfill({ status: answer.status, contentType: answer.contentType, body: answer.text })
  }
}

const isCheck = process.argv.includes('--check')
/** Pictures that differ from the files. */
const changed: string[] = []

function keep(name: string, picture: Uint8Array): void {
  const file = join(FOLDER, name)
  if (!isCheck) return writeFileSync(file, picture)
  if (!existsSync(file) || !readFileSync(file).equals(picture)) changed.push(name)
}

/** A picture that was the same twice in a row: a busy browser may not have drawn all of a screen yet. */
async function stablePicture(tab: Tab): Promise<Buffer> {
  for (let last = await tab.screenshot(); ;) {
    const next = await tab.screenshot()
    if (next.equals(last)) return next
    last = next
  }
}

/** Views that a browser has saved, for the picture of their box. */
const SAVED_VIEWS = [
  { place: 'messages', name: 'Newsletters that wait', query: 'sender=news%40shop.example' },
  { place: 'messages', name: 'Older than a day', query: 'older_than=1d' },
]

/** Draws a list with the opened box of saved views, which the script of the page makes. */
async function drawViews(browser: Browser, page: Page, at: number): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const viewport of SIZES) {
      const context = await browser.newContext({ viewport, colorScheme, reducedMotion: 'reduce' })
      await context.route('**/*', answers(page))
      await context.clock.setFixedTime(at)
      await context.addInitScript(`localStorage.setItem('deferd-views', ${JSON.stringify(JSON.stringify(SAVED_VIEWS))})`)
      const tab = await context.newPage()
      await tab.goto(`${ORIGIN}/messages?sender=news%40shop.example&destination=mail.example`)
      await tab.locator('.views > summary').click()
      keep(`views-${viewport.width}-${colorScheme}.png`, withPalette(await stablePicture(tab)))
      await context.close()
    }
}

async function draw(browser: Browser, page: Page, screens: Readonly<Record<string, string>>): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const viewport of SIZES) {
      // A transition of a colour that runs when the picture is taken would make it differ from that of another run.
      const context = await browser.newContext({ viewport, colorScheme, javaScriptEnabled: false, reducedMotion: 'reduce' })
      await context.route('**/*', answers(page))
      const tab = await context.newPage()
      for (const [name, path] of Object.entries(screens)) {
        await tab.goto(`${ORIGIN}/${path}`)
        keep(`${name}-${viewport.width}-${colorScheme}.png`, withPalette(await stablePicture(tab)))
      }
      await context.close()
    }
}

/** Programs that are told of the mail: one takes everything, one refuses some events, and one wants no more. */
async function subscribe(world: World): Promise<void> {
  await world.webhook('crm', { types: ['recipient.*'] })
  await world.webhook('billing', {
    types: ['message.*', 'recipient.bounced'],
    batch: 20,
    handler: ({ body }) => (body.includes('order-3') || body.includes('lost8') ? 422 : 204),
  })
  const old = await world.webhook('old-shop', { types: ['recipient.bounced'] })
  old.replies(410)
}

const world = await shopWorld()
const held = await idAt(world, 'post.example')
await world.operate('hold', [held])
await world.lives.operations().suspend('closed.example', { who: 'page:alice', duration: null, reason: 'moves to another host' })
const { store, reader, relay, clock } = world
const loaded = configFrom(SETTINGS, 'relay.example')
const accessEntries = new AccessEntries({ store, reader, clock })
const outbox = { onPublished: () => () => undefined }
const subscriptions = new SubscriptionChanges({ store, reader, clock, changed: async () => undefined })
const api = queueApi({
  clock,
  loaded: () => loaded,
  addresses: world.lives.addresses,
  parts: () => ({
    store,
    reader,
    relay,
    outbox,
    accessEntries,
    node: null,
    services: { operations: world.lives.operations(), subscriptions, sender: null, schedules: null, domainChecks: null },
  }),
})
const health = () => Promise.resolve({ state: 'good', text: 'commits in 1 ms' })
const page = new Page({
  view: new Proxy(api.view, { get: (view, name): unknown => (name === 'health' ? health : Reflect.get(view, name)) }),
  now: api.now,
  causes: api.causes,
  senders: api.senders,
})
const browser = await chromium.launch({ executablePath: BROWSER, args: EXACT })
const wanted = process.argv.slice(2).filter((one) => !one.startsWith('-'))
if (!isCheck && wanted.length === 0) rmSync(FOLDER, { recursive: true, force: true })
mkdirSync(FOLDER, { recursive: true })
try {
  const screens = {
    now: '',
    trends: 'trends?range=6h',
    destinations: 'destinations',
    destination: 'destinations/mail.example',
    providers: 'providers',
    provider: 'providers/mailhost',
    causes: 'causes',
    messages: 'messages',
    message: `messages/${await idAt(world, 'mail.example')}`,
    'dry-run': 'operations/new?operation=hold&scope=filter&sender=news%40shop.example',
    history: 'history',
    planner: 'planner?policy=doubling&other=fixed',
    audit: 'audit',
    log: 'log',
    events: 'events',
    webhooks: 'webhooks',
    subscription: 'webhooks/billing',
    replay: 'webhooks/old-shop/replay?events=waiting',
  }
  const isWanted = ([name]: readonly [string, string]): boolean => wanted.length === 0 || wanted.includes(name)
  await draw(browser, page, Object.fromEntries(Object.entries(screens).filter(isWanted)))
  if (isWanted(['views', ''])) await drawViews(browser, page, clock.wall.now())
} finally {
  await browser.close()
  api.close()
  await world.close()
}
if (changed.length > 0) throw new Error(`${changed.length} pictures have changed: ${changed.join(', ')}`)
