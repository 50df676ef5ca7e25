/**
 * Clients that send the requests of the page in a browser: `node page-clients.ts URL COOKIE SECONDS`. Ten stay at the screen Now and
 * read its stream; three open one screen after the other, and read its files, its stream or its repeated request, and the screen again, as `live.js` does.
 * Prints one line of JSON at its end.
 */
import { request, type IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

export interface PageUse {
  readonly screens: number
  /** Events of all streams. */
  readonly events: number
  readonly bytes: number
}

const WATCHERS = 10
const OPERATORS = 3
/** Time for which an operator reads a screen, and interval of the requests of a screen without a stream, and for its sentences and rows, in ms. */
const READING = 10_000
const POLL = 10_000

export interface Screen {
  readonly name: string
  /** Below the root of the page. */
  readonly path: string
}

/** The screens that an operator opens in turn. */
export const ROUND: readonly Screen[] = [
  { name: 'Now', path: '' },
  { name: 'Destinations', path: 'destinations' },
  { name: 'Destination', path: 'destinations/d00042.example' },
  { name: 'Messages', path: 'messages' },
  { name: 'Messages, a destination', path: 'messages?destination=d00042.example' },
  { name: 'Message', path: 'messages/{id}' },
  { name: 'History', path: 'history' },
  { name: 'Planner', path: 'planner' },
  { name: 'Audit', path: 'audit' },
]

export interface Answer {
  /** Time to the first byte of the body, in ms. */
  readonly firstByte: number
  readonly status: number
  readonly body: string
}

export interface PageAccess {
  /** The root, with a slash at its end. */
  readonly url: string
  readonly cookie: string
}

function open({ url, cookie }: PageAccess, path: string, headers: Readonly<Record<string, string>>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(new URL(path, url), { headers: { cookie, ...headers } }, resolve)
      .once('error', reject)
      .end()
  })
}

/** Reads a resource to its end. Throws at a status of 400 or more. */
export async function get(access: PageAccess, path: string): Promise<Answer> {
  const began = performance.now()
  const response = await open(access, path, { accept: 'text/html, application/json' })
  const parts: Buffer[] = []
  let firstByte = 0
  for await (const part of response) {
    if (firstByte === 0) firstByte = performance.now() - began
    parts.push(part as Buffer)
  }
  // A redirection has no body.
  if (firstByte === 0) firstByte = performance.now() - began
  const { statusCode: status = 0 } = response
  const body = Buffer.concat(parts).toString()
  if (status >= 400) throw new Error(`${path} was answered with ${status}: ${body.slice(0, 300)}`)
  return { firstByte, status, body }
}

/** The addresses that a screen reads: files, and its live values. */
export function linksOf(html: string): { readonly files: readonly string[]; readonly live: string | null; readonly stream: string | null } {
  const attribute = (name: string): string | null => new RegExp(`${name}="([^"]*)"`).exec(html)?.[1] ?? null
  const files = [...html.matchAll(/(?:href|src)="([^"]*static\/[^"]*)"/g)].flatMap(([, path]) => path ?? [])
  return { files: [...new Set(files)], live: attribute('data-live-path'), stream: attribute('data-live-stream') }
}

/** Scripts that `page.js` imports. */
const IMPORTED = ['live.js', 'dialog.js', 'text-forms.js']

async function browse(access: PageAccess, seconds: number): Promise<PageUse> {
  const use = { screens: 0, events: 0, bytes: 0 }
  const over = AbortSignal.timeout(seconds * 1_000)

  async function visit(path: string, known: Set<string>, time: AbortSignal): Promise<void> {
    const { body } = await get(access, path)
    use.screens++
    const { files, live, stream } = linksOf(body)
    const base = new URL(path, access.url)
    const all = files.flatMap((file) => [file, ...(file.endsWith('/page.js') ? IMPORTED.map((name) => file.replace('page.js', name)) : [])])
    const wanted = all
      .map((file) => new URL(file, base).pathname.slice(new URL(access.url).pathname.length))
      .filter((file) => !known.has(file))
    await Promise.all(wanted.map((file) => get(access, file)))
    for (const file of wanted) known.add(file)
    if (stream !== null) await Promise.all([readStream(stream, time), poll(path, time)])
    else if (live !== null) await Promise.all([poll(live, time), poll(path, time)])
    else await until(time)
  }

  async function readStream(path: string, time: AbortSignal): Promise<void> {
    const response = await open(access, path, { accept: 'text/event-stream' })
    response.on('data', (bytes: Buffer) => {
      use.bytes += bytes.length
      use.events += bytes.includes('event: now') ? 1 : 0
    })
    await until(time)
    response.destroy()
  }

  async function poll(path: string, time: AbortSignal): Promise<void> {
    while (await rested(POLL, time)) await get(access, path)
  }

  async function operate(begin: number): Promise<void> {
    const known = new Set<string>()
    const [, id = ''] = /href="(?:\.\/)?messages\/(\w+)/.exec((await get(access, 'messages')).body) ?? []
    for (let n = begin; !over.aborted; n++) {
      const { path } = ROUND[n % ROUND.length] ?? { path: '' }
      await visit(path.replace('{id}', id), known, AbortSignal.any([over, AbortSignal.timeout(READING)]))
    }
  }

  await Promise.all([
    ...Array.from({ length: WATCHERS }, () => visit('', new Set(), over)),
    ...Array.from({ length: OPERATORS }, (_, n) => operate(3 * n)),
  ])
  return use
}

const until = (time: AbortSignal): Promise<void> =>
  time.aborted ? Promise.resolve() : new Promise((resolve) => time.addEventListener('abort', () => resolve(), { once: true }))

/** Waits, and returns false when the time is over before. */
const rested = (wait: number, signal: AbortSignal): Promise<boolean> => pause(wait, true, { signal }).catch(() => false)

if (import.meta.main) {
  const [url = '', cookie = '', seconds = ''] = process.argv.slice(2)
  process.stdout.write(`${JSON.stringify(await browse({ url, cookie }, Number(seconds)))}\n`)
}
