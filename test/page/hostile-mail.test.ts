/**
 * Hostile mail, replies, reasons and queries through every screen and resource, over HTTP and in Chromium: they stay text, they are
 * complete, and no policy is violated.
 */
import { createServer, type AddressInfo, type Server } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { maskControls } from '../../src/mail/smtp-reply.ts'
import { html } from '../../src/presentation/html.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { CONTENT_SECTIONS } from '../../src/page/markup/links.ts'
import { launchBrowser, noBrowser } from '../support/browser.ts'
import { shellWord } from '../../src/system/shell-word.ts'
import { HOSTILE_ADDRESSES, HOSTILE_CONTENT, HOSTILE_ORCPT, HOSTILE_PARTS, HOSTILE_TEXTS } from '../support/hostile-mail.ts'
import { PageDaemon } from '../support/page-daemon.ts'
import { ScriptedServer } from '../support/scripted-server.ts'

/** A reply with bytes that are no UTF-8. */
const BYTES = Buffer.from([0x34, 0x35, 0x31, 0x20, 0x3c, 0x62, 0x3e, 0xff, 0xfe, 0xc0, 0xaf, 0x1b, 0x5b, 0x32, 0x4a])

const EHLO = '250-far.example\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n250 DSN'

let remote: Server
let daemon: PageDaemon
let cookie: string

/** The reply to RCPT: that of the number in the local part, for good after `bounce`. */
function replyTo(line: string) {
  const [, kind, number] = /<(reply|bounce)-(\d+)@/.exec(line) ?? []
  const reply =
    kind === undefined ? BYTES : Buffer.from(`${kind === 'bounce' ? '550 5.1.1' : '451 4.7.1'} ${HOSTILE_TEXTS[Number(number)]}`)
  return line.includes('postmaster') || line.includes('@shop.example')
    ? '250 2.1.5 Ok'
    : { packets: [Buffer.concat([reply, Buffer.from('\r\n')])] }
}

beforeAll(async () => {
  remote = createServer(new ScriptedServer('far.example', { ehlo: EHLO, rcpt: replyTo }).accept)
  await new Promise<void>((resolve) => void remote.listen(0, '127.0.0.1', resolve))
  daemon = await PageDaemon.start({ relayhost: `[127.0.0.1]:${(remote.address() as AddressInfo).port}` })
  cookie = await daemon.cookie('admin', HOSTILE_TEXTS[0])
  const senderOf = (n: number): string => HOSTILE_ADDRESSES[n % HOSTILE_ADDRESSES.length] ?? ''
  const all = HOSTILE_TEXTS.flatMap((_, n) =>
    ['reply', 'bounce'].map((kind) => ({ from: senderOf(n), to: `${kind}-${n}@far.example`, parameters: { mail: 'SMTPUTF8' } })),
  )
  await daemon.send([
    ...all,
    ...HOSTILE_ADDRESSES.map((from) => ({ from, to: from.replace('shop', 'far'), parameters: { mail: 'SMTPUTF8' } })),
    { from: 'app@shop.example', to: 'bytes@far.example', content: HOSTILE_CONTENT, parameters: { rcpt: `ORCPT=rfc822;${HOSTILE_ORCPT}` } },
    { from: 'parts@shop.example', to: 'bytes@far.example', content: HOSTILE_PARTS },
  ])
  const reader = openQueueReader(daemon.queueDirectory)
  const isTried = async () =>
    (await reader.list(ANY_MESSAGE, { after: 0, limit: 100 })).every(({ recipients }) => recipients.every(({ last }) => last !== null))
  while (!(await isTried())) await new Promise((resolve) => setTimeout(resolve, 20))
  await reader.close()
  for (const reason of HOSTILE_TEXTS)
    await post('operations', {
      operation: 'hold',
      selection: { kind: 'filter', filter: { sender: `*${reason.slice(0, 100)}*` } },
      reason: reason.slice(0, 200),
    })
  await post(`destinations/${encodeURIComponent(await destination())}/suspend`, { reason: HOSTILE_TEXTS[2] })
})
afterAll(async () => {
  await daemon.close()
  await new Promise<void>((resolve) => void remote.close(() => resolve()))
})

interface Value {
  readonly queue_id: string
  readonly destination: string
  readonly sender: string
  readonly history: readonly { readonly reply: string }[]
  readonly recipients: readonly { readonly orig_address?: string; readonly address: string }[]
  readonly messages: readonly Value[]
  readonly destinations: readonly Value[]
  readonly records: readonly { readonly reason: string | null; readonly who: string; readonly arguments: string }[]
  readonly causes: readonly { readonly cause: string }[]
}

const ask = (path: string, accept = 'text/html') => fetch(daemon.url + path, { redirect: 'manual', headers: { accept, cookie } })

const valueOf = async (path: string): Promise<Value> => (await (await ask(`api/v1/${path}`, 'application/json')).json()) as Value

const destination = async (): Promise<string> => (await valueOf('destinations')).destinations[0]?.destination ?? ''

async function post(path: string, body: object): Promise<void> {
  const headers = { cookie, origin: daemon.url.slice(0, -1), 'content-type': 'application/json' }
  const { status } = await fetch(`${daemon.url}api/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  expect(status, path).toBe(200)
}

/** Queries with a hostile text in each parameter. */
const queries = (text: string): readonly string[] => {
  const value = encodeURIComponent(text)
  return [
    ...['sender', 'recipient', 'destination', 'reply', 'status', 'older_than', 'queue', 'attempts_over', 'after'].map(
      (name) => `messages?${name}=${value}`,
    ),
    ...['recipient', 'sender', 'outcome', 'since', 'before'].map((name) => `history?${name}=${value}`),
    ...['name', 'order', 'after'].map((name) => `destinations?${name}=${value}`),
    ...['policy', 'other', 'minimal', 'maximal', 'lifetime'].map((name) => `planner?${name}=${value}`),
    ...['who', 'action', 'before'].map((name) => `audit?${name}=${value}`),
    ...['operation', 'scope', 'sender', 'id', 'back', 'problem'].map(
      (name) => `operations/new?operation=hold&scope=filter&${name}=${value}`,
    ),
    `?range=${value}`,
    `search?q=${value}`,
    `messages/${value}`,
    `messages/${value}/sessions/${value}`,
    `messages/${value}/content?show=${value}`,
    `destinations/${value}`,
    `destinations/${value}/suspend`,
    `operations/${value}?back=${value}`,
    value,
  ]
}

/** Paths below the root that a screen leads to, without downloads and files. */
const linksIn = (page: string, at: string): readonly string[] =>
  [...page.matchAll(/<a [^>]*href="([^"]*)"/g)]
    .map(([, href = '']) => new URL(href.replaceAll('&amp;', '&').replaceAll('&#39;', "'"), daemon.url + at).href)
    .filter((url) => url.startsWith(daemon.url))
    .map((url) => url.slice(daemon.url.length).replace(/#.*/, ''))
    .filter((path) => !/^(?:api|static)\/|\/content\?/.test(path))

/** The sections of both hostile contents. */
async function contentScreens(): Promise<readonly string[]> {
  const found = await Promise.all(['app', 'parts'].map((name) => valueOf(`messages?sender=${name}@shop.example`)))
  return found.flatMap(({ messages: [message] }) =>
    CONTENT_SECTIONS.map(({ name }) => `messages/${message?.queue_id}/content?show=${name}`),
  )
}

/** Every screen that can be reached from the first one by links, with those of dry runs. */
async function screens(): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  const { messages } = await valueOf('messages?limit=500')
  const plans = messages.map(({ queue_id: id }) => `operations/new?operation=delete&scope=ids&id=${id}`)
  const details = messages.map(({ queue_id: id }) => `messages/${id}`)
  const waiting = [
    '',
    `operations/new?operation=expire&scope=filter&sender=${encodeURIComponent('*pwned*')}`,
    ...plans.slice(0, 5),
    ...details.slice(0, 5),
  ]
  for (const path of waiting) {
    if (found.has(path) || found.size === 400) continue
    const response = await ask(path)
    const page = await response.text()
    found.set(path, page)
    if (response.headers.get('content-type')?.startsWith('text/html') === true) waiting.push(...linksIn(page, path))
  }
  return found
}

const TAG = /<(\/?)([a-z][a-z0-9]*)((?:\s+[a-zA-Z][a-zA-Z0-9-]*(?:="[^"<>]*")?)*)\s*\/?>|<!doctype html>/g
const FORBIDDEN_TAGS = new Set([
  'img',
  'iframe',
  'object',
  'embed',
  'base',
  'b',
  'i',
  'audio',
  'video',
  'style',
  'applet',
  'frame',
  'template',
])

/** Expects that a page has no markup but that of the templates, and no character that controls what is shown. */
function expectInert(page: string, at: string): void {
  // Every "<" opens a tag of the templates.
  expect(page.replace(TAG, ''), at).not.toMatch(/[<>]/)
  for (const [, , tag = '', attributes = ''] of page.matchAll(TAG)) {
    expect(FORBIDDEN_TAGS.has(tag), `${at}: <${tag}>`).toBe(false)
    expect(attributes.replace(/"[^"]*"/g, ''), at).not.toMatch(/\s(?:on[a-z]+|style|srcdoc|formaction)(?![a-z-])/i)
    expect(attributes, at).not.toMatch(/\s(?:src|href|action)="(?:[a-z]+:|\/)/i)
    if (tag === 'script' && attributes !== '') expect(attributes, at).toMatch(/ src="[./]*static\/[0-9a-f]+\/\w+\.js"/)
    if (tag === 'script') expect(page, at).not.toMatch(/<script[^>]*>[^<]/)
  }
  expect(page.replace(/[\n\t]/g, ''), at).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
}

describe('over HTTP', () => {
  test('every screen that links lead to is inert', async () => {
    const found = await screens()
    expect(found.size).toBeGreaterThan(60)
    for (const [path, page] of found) expectInert(page, path)
    const all = [...found.values()].join('\n')
    const dialogue = [...found].find(([path]) => /^messages\/\w+\/sessions\/\w+$/.test(path))?.[1]
    expect(dialogue).toContain('C RCPT TO:&lt;')
    for (const text of HOSTILE_TEXTS) expect(all.includes(html`<strong>451 4.7.1</strong> ${maskControls(text)}`.markup), text).toBe(true)
  })

  test('every section of a content is inert, and has the whole text', async () => {
    const paths = await contentScreens()
    expect(paths).toHaveLength(10)
    let all = ''
    for (const path of paths) {
      const response = await ask(path)
      expect(response.status, path).toBe(200)
      const page = await response.text()
      expectInert(page, path)
      all += page
    }
    expect(all).toContain('&lt;form action=&quot;//evil.example&quot;&gt;')
    expect(all).toContain(String.raw`&lt;svg onload=pwned()&gt;\u202egnp.svg`)
    expect(all).toContain(String.raw`&lt;img src=x onerror=pwned()&gt;\u202e\u001b[2J`)
  })

  test('hostile queries are inert on every screen, in redirections and in refusals', async () => {
    for (const [n, text] of HOSTILE_TEXTS.entries())
      for (const path of queries(text.slice(0, 300)).filter((_, i) => (i + n) % 3 === 0)) {
        const response = await ask(path)
        const page = await response.text()
        expect(response.status, path).toBeLessThan(500)
        expect(response.headers.get('location') ?? '', path).toMatch(/^[!-~]*$/)
        expect(response.headers.get('set-cookie'), path).toBeNull()
        if (response.headers.get('content-type')?.startsWith('text/html') === true) expectInert(page, path)
      }
  })

  test('the API has each text as it came, in JSON without control characters', async () => {
    const paths = [
      'messages?limit=500',
      'history?limit=500',
      'destinations',
      'audit?limit=500',
      'now',
      `destinations/${encodeURIComponent(await destination())}/causes`,
      'whoami',
    ]
    for (const path of paths)
      expect((await (await ask(`api/v1/${path}`, 'application/json')).text()).trimEnd(), path).toMatch(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u)
    const { messages } = await valueOf('messages?limit=500')
    const stories = await Promise.all(messages.map(({ queue_id: id }) => valueOf(`messages/${id}`)))
    const replies = stories.flatMap(({ history }) => history.map(({ reply }) => reply))
    // Control characters of a reply are masked when it is received.
    expect(HOSTILE_TEXTS.filter((text) => !replies.includes(`451 4.7.1 ${maskControls(text)}`))).toEqual([])
    expect(replies).toContain(maskControls(BYTES.toString('latin1')))
    const addresses = stories.flatMap(({ sender, recipients }) => [sender, ...recipients.map(({ address }) => address)])
    for (const address of HOSTILE_ADDRESSES) expect(addresses).toContain(address)
    expect(stories.flatMap(({ recipients }) => recipients.map((one) => one.orig_address))).toContain('"><img src=x onerror=pwned()>')
    const { records } = await valueOf('audit?limit=500')
    expect(records.map(({ reason }) => reason)).toEqual([HOSTILE_TEXTS[2], ...HOSTILE_TEXTS.map((text) => text.slice(0, 200)).toReversed()])
    expect(records[0]?.arguments).toBe(`${shellWord(await destination())} ${shellWord(`--reason=${HOSTILE_TEXTS[2]}`)}`)
    expect(records[0]?.who).toBe(`page:${HOSTILE_TEXTS[0]} (127.0.0.1)`)
    const left = (await valueOf('history?limit=500')).messages.map((one) => JSON.stringify(one))
    for (const text of HOSTILE_TEXTS)
      expect(
        left.some((one) => one.includes(JSON.stringify(`550 5.1.1 ${maskControls(text)}`).slice(1, -1))),
        text,
      ).toBe(true)
  })

  test('a content of a megabyte is complete, byte for byte, and a download of text', async () => {
    const [message] = (await valueOf('messages?sender=app@shop.example')).messages
    const response = await ask(`api/v1/messages/${message?.queue_id}/content`)
    expect([
      response.headers.get('content-type'),
      response.headers.get('content-disposition'),
      response.headers.get('x-content-type-options'),
    ]).toEqual(['text/plain; charset=utf-8', `attachment; filename="${message?.queue_id}.eml"`, 'nosniff'])
    const content = Buffer.from(await response.arrayBuffer())
    expect(content.length).toBeGreaterThan(1_000_000)
    // The relay adds fields to the header.
    const end = HOSTILE_CONTENT.indexOf('\r\n\r\n')
    expect(content.includes(HOSTILE_CONTENT.subarray(0, end))).toBe(true)
    expect(content.subarray(content.indexOf('\r\n\r\n')).equals(HOSTILE_CONTENT.subarray(end))).toBe(true)
  })
})

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'in Chromium' : `in a browser (skipped: ${noBrowser})`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  /** A tab that is logged in, and what hostile text has caused in it. */
  async function tab(): Promise<{ readonly page: Page; readonly caused: () => Promise<readonly string[]> }> {
    const context = await browser.newContext()
    const [name = '', value = ''] = cookie.split(/=(.*)/s)
    await context.addCookies([{ name, value, url: daemon.url, sameSite: 'Strict', httpOnly: true }])
    await context.addInitScript(
      "globalThis.caused = []; globalThis.pwned = () => caused.push('pwned'); addEventListener('securitypolicyviolation', (event) => caused.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`))",
    )
    const page = await context.newPage()
    const seen: string[] = []
    page.on('pageerror', (error) => seen.push(error.message))
    page.on('dialog', (dialog) => seen.push(dialog.message()))
    page.on('request', (request) => {
      if (!request.url().startsWith(daemon.url)) seen.push(request.url())
    })
    page.on('console', (message) => {
      if (message.type() === 'error' && !/status of 4\d\d/.test(message.text())) seen.push(message.text())
    })
    const found = `[...caused, ...[...document.querySelectorAll('img, iframe, object, embed, base, b, template, script:not([src])')].map((one) => one.outerHTML)]`
    return { page, caused: async () => [...seen, ...(await page.evaluate<string[]>(found))] }
  }

  test('no screen runs a script of the mail, loads anything else, or violates the policy', async () => {
    const { page, caused } = await tab()
    // Three screens of each kind.
    const kinds = Map.groupBy((await screens()).keys(), (path) => path.replace(/\?.*/, '').replace(/\/(?!new)[^/]+/, '/:'))
    expect(kinds.size).toBeGreaterThan(10)
    for (const path of [...kinds.values()].flatMap((paths) => paths.slice(0, 3))) {
      await page.goto(daemon.url + path)
      expect(await caused(), path).toEqual([])
    }
    for (const path of await contentScreens()) {
      await page.goto(daemon.url + path)
      expect(await caused(), path).toEqual([])
    }
    for (const path of HOSTILE_TEXTS.slice(0, 6).flatMap((text, n) => queries(text).filter((_, i) => i % 6 === n))) {
      await page.goto(daemon.url + path)
      expect(await caused(), path).toEqual([])
    }
  })

  test('control characters of a reason are written out; dialogs and live values are inert too', async () => {
    const { page, caused } = await tab()
    await page.goto(`${daemon.url}audit`)
    const reason = page.locator('td', { hasText: 'gnp.exe' }).first()
    expect(await reason.innerText()).toContain(String.raw`\u202egnp.exe\u2066\u2069\u200b\u200d\ufeff\u2028\u2029\u3164\udb40\udc41`)
    await page.goto(`${daemon.url}messages`)
    await page.locator('input[name=id]').first().check()
    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.locator('dialog[open]').waitFor()
    expect(await caused()).toEqual([])
    await page.goto(daemon.url)
    await page.getByText('live', { exact: true }).waitFor()
    expect(await caused()).toEqual([])
  })
})
