/**
 * Scrapes /metrics of a daemon with a large queue. Measures the waits of SMTP clients and health checks meanwhile, and the cost of
 * the first page of one destination. The daemon is a process of its own.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { openReaderEngine } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { fillBacklog } from './backlog.ts'

const DEFERD = resolve(import.meta.dirname, '../../bin/deferd.js')
const SCRAPES = 20
/** Milliseconds between scrapes, sessions and health checks. */
const PAUSE = { scrape: 100, session: 5, health: 20 }

/** Times in milliseconds. */
interface Times {
  readonly median: number
  readonly p99: number
  readonly max: number
}

export interface ScrapeFigures {
  readonly messages: number
  /** Time from the connection to the greeting. */
  readonly greeting: Times & { readonly sessions: number }
  readonly health: Times & { readonly checks: number }
  readonly scrape: Times
  /** Time from the start until a scrape shows the whole queue. */
  readonly counted: number
  /** CPU time of the first page of an exact destination. */
  readonly firstPage: Times
}

type DaemonFigures = Omit<ScrapeFigures, 'messages' | 'firstPage'>

export async function scrapesBesideMail(messages: number, destinations: number): Promise<ScrapeFigures> {
  const directory = mkdtempSync(join(tmpdir(), 'deferd-scrapes-'))
  try {
    await fill(directory, messages, destinations)
    const firstPage = firstPages(directory, destinations)
    return { messages, ...(await scraped(directory, messages)), firstPage }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const nameOf = (n: number): string => `d${String(n).padStart(5, '0')}.example`

async function fill(directory: string, messages: number, destinations: number): Promise<void> {
  const { store, close } = await openStore(directory, { threads: false, create: true })
  const dueIn = (n: number): number => 7_200_000 + (n / messages) * 3_600_000
  await fillBacklog(store, { messages, now: Date.now(), destinationOf: (n) => nameOf(n % destinations), dueIn })
  await close()
}

function firstPages(directory: string, destinations: number): Times {
  const engine = openReaderEngine(directory)
  const page = (n: number): number => {
    const before = process.cpuUsage()
    const listed = engine.list({ ...ANY_MESSAGE, destination: nameOf(n % destinations) }, { after: 0, limit: 1_000 })
    const { user, system } = process.cpuUsage(before)
    if (listed.length === 0) throw new Error(`nothing is listed of ${nameOf(n % destinations)}`)
    return (user + system) / 1_000
  }
  for (let n = 0; n < 20; n++) page(n)
  const times = Array.from({ length: 50 }, (_, n) => page(20 + n * 131))
  engine.close()
  return timesOf(times)
}

async function scraped(directory: string, messages: number): Promise<DaemonFigures> {
  const { child, smtp, http } = await started(directory)
  try {
    return await measured(smtp, http, messages)
  } finally {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    }
  }
}

async function measured(smtp: number, http: string, messages: number): Promise<DaemonFigures> {
  const startedAt = performance.now()
  const load = { isRunning: true }
  const repeat = async (pause: number, measure: () => Promise<number>): Promise<readonly number[]> => {
    const times: number[] = []
    while (load.isRunning) {
      times.push(await measure())
      await sleep(pause)
    }
    return times
  }
  const greetings = repeat(PAUSE.session, () => greetedAfter(smtp))
  const health = repeat(PAUSE.health, async () => (await fetched(`${http}/healthz`)).took)
  const scrapes: number[] = []
  const scrapeAll = async (): Promise<number> => {
    let counted: number | null = null
    while (scrapes.length < SCRAPES || counted === null) {
      const { took, text } = await fetched(`${http}/metrics`)
      scrapes.push(took)
      if (text.includes(`deferd_queue_messages{queue="deferred"} ${messages}\n`)) counted ??= performance.now() - startedAt
      await sleep(PAUSE.scrape)
    }
    return counted
  }
  const [greeted, checked, counted] = await Promise.all([greetings, health, scrapeAll().finally(() => (load.isRunning = false))])
  return {
    greeting: { ...timesOf(greeted), sessions: greeted.length },
    health: { ...timesOf(checked), checks: checked.length },
    scrape: timesOf(scrapes),
    counted: Math.round(counted),
  }
}

/** Starts the daemon, and returns its addresses. */
async function started(directory: string): Promise<{ readonly child: ChildProcess; readonly smtp: number; readonly http: string }> {
  const options = [`queue_directory=${directory}`, 'smtpd_listen=127.0.0.1:0', 'http_listen=127.0.0.1:0', 'myhostname=relay.example']
  const child = spawn(process.execPath, [DEFERD, 'start', ...options.flatMap((option) => ['-o', option])], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, DEFERD_CONFIG: '/dev/null' },
  })
  let text = ''
  for await (const line of createInterface({ input: child.stdout })) {
    text += `${line}\n`
    const [, port, http] = /listens on 127\.0\.0\.1:(\d+)[^]*metrics: (http:\S+)\/metrics/.exec(text) ?? []
    if (port !== undefined && http !== undefined) return { child, smtp: Number(port), http }
  }
  throw new Error(`the daemon has not started: ${text}`)
}

function greetedAfter(port: number): Promise<number> {
  const begun = performance.now()
  return new Promise((done, fail) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', fail)
    socket.once('data', () => {
      const took = performance.now() - begun
      socket.end('QUIT\r\n')
      socket.resume()
      socket.once('close', () => done(took))
    })
  })
}

async function fetched(url: string): Promise<{ readonly took: number; readonly text: string }> {
  const begun = performance.now()
  const text = await (await fetch(url)).text()
  return { took: performance.now() - begun, text }
}

const sleep = (time: number): Promise<void> => new Promise((done) => setTimeout(done, time))

function timesOf(times: readonly number[]): Times {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (part: number): number => Number((sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0).toFixed(2))
  return { median: at(0.5), p99: at(0.99), max: at(1) }
}
