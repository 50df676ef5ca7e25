/**
 * A million deferred messages, half of them at one destination: the start of a daemon, claims, and listings, beside SQLite.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fillBacklog } from '../../../test/support/backlog.ts'
import { parseDatabaseUrl } from '../../../src/config/values/database-url.ts'
import { openPostgresReader } from '../../../src/store/postgres/open-reader.ts'
import type { QueueReader } from '../../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { openStoreReadOnly } from '../../../src/store/sqlite/open-store.ts'
import { startDaemon, type BenchDaemon } from '../figures/bench-daemon.ts'
import { percentile, type Figure } from '../figures/figure.ts'
import { firstAccept } from '../figures/first-accept.ts'
import type { Part, Setting } from '../figures/subject.ts'
import { pages } from '../../../src/queue/list-pages.ts'
import { rotated } from '../statistics.ts'
import { startNode } from './bench-node.ts'
import { startBenchServer } from './bench-server.ts'
import { openBenchStore } from './bench-store.ts'
import { claimTimes } from './life-cycle.ts'

const MESSAGES = 1_000_000
const DESTINATIONS = 10_000
/** The destination of every second message. */
const LARGE = 'dead.example'
/** Time until the first message is due: longer than a run. */
const DUE_IN = 12 * 3_600_000
const HOUR = 3_600_000
const CLAIMS = 50

/** A filled queue: its folder or URL, a daemon on it, and a reader. */
interface Filled {
  readonly name: 'sqlite' | 'postgres'
  readonly place: string
  readonly start: (setting: Setting) => Promise<BenchDaemon>
  readonly read: () => Promise<QueueReader>
}

interface Times {
  readonly start: number[]
  readonly claim: number[]
  readonly listing: number[]
}

export const WAITING: Part = {
  name: 'waiting',
  about: 'a million deferred messages: start, claims and listing beside SQLite',
  measure: async (setting) => {
    const queues = await fill(setting)
    const times: Record<Filled['name'], Times> = { sqlite: noTimes(), postgres: noTimes() }
    for (let round = 0; round < setting.rounds; round++)
      for (const queue of rotated(queues, round)) await measure(setting, queue, times[queue.name])
    const { sqlite, postgres } = times
    const figure = (name: string, unit: string, values: number[], most?: number): Figure => ({
      name,
      unit,
      values,
      target: most === undefined ? null : { most },
    })
    return [
      figure('postgres, start → first accept', 'ms', postgres.start, 1_000),
      figure('sqlite, start → first accept', 'ms', sqlite.start),
      figure('postgres, claim of 100, p50', 'ms', postgres.claim, 5),
      figure('sqlite, claim of 100, p50', 'ms', sqlite.claim),
      figure('postgres, listing', 's', postgres.listing),
      figure('sqlite, listing', 's', sqlite.listing),
      figure(
        'listing, postgres ÷ sqlite',
        '',
        postgres.listing.map((time, round) => time / (sqlite.listing[round] ?? Number.NaN)),
        2.5,
      ),
    ]
  },
}

const noTimes = (): Times => ({ start: [], claim: [], listing: [] })

async function measure(setting: Setting, queue: Filled, times: Times): Promise<void> {
  times.start.push(await firstAccept(() => queue.start(setting)))
  times.claim.push(percentile(await claims(queue), 0.5))
  times.listing.push(await listing(queue))
}

async function claims({ place }: Filled): Promise<number[]> {
  const { store, close } = await openBenchStore(place)
  try {
    await claimTimes(store, { destination: LARGE, limit: 100, claims: 5 })
    return await claimTimes(store, { destination: LARGE, limit: 100, claims: CLAIMS })
  } finally {
    await close()
  }
}

/** Time to list all messages, in seconds. */
async function listing({ read }: Filled): Promise<number> {
  const reader = await read()
  const began = performance.now()
  try {
    for await (const page of pages(reader, { filter: ANY_MESSAGE })) if (page.length === 0) throw new Error('an empty page')
    return (performance.now() - began) / 1_000
  } finally {
    await reader.close()
  }
}

/** Fills both queues, unless the folder has them. */
async function fill(setting: Setting): Promise<readonly Filled[]> {
  const messages = setting.sized(MESSAGES)
  const folder = join(setting.filled, `waiting-${messages}`)
  const complete = join(folder, 'complete')
  if (!existsSync(complete)) rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const server = await startBenchServer(setting, folder)
  const directory = join(folder, 'sqlite')
  if (!existsSync(complete)) {
    for (const place of [directory, server.url()]) await fillQueue(place, messages, setting.say)
    await server.query('vacuum analyze')
    writeFileSync(complete, '')
  }
  const url = parseDatabaseUrl(server.url())
  if (url === null) throw new Error(`${server.url()} is no URL`)
  // Without a relayhost, the destinations of the queue are those that its mail has.
  const settings = { relayhost: '' }
  return [
    {
      name: 'sqlite',
      place: directory,
      start: (one) => startDaemon(one, 'sqlite', { ...settings, queue_directory: directory }),
      read: async () => openStoreReadOnly(directory).reader,
    },
    {
      name: 'postgres',
      place: server.url(),
      start: (one) => startNode(one, 'postgres', server.url(), settings),
      read: () => openPostgresReader({ url, durability: 'primary' }),
    },
  ]
}

async function fillQueue(place: string, messages: number, say: (line: string) => void): Promise<void> {
  const began = performance.now()
  const { store, close } = await openBenchStore(place)
  await fillBacklog(store, {
    messages,
    now: Date.now(),
    destinationOf: (n) => (n % 2 === 0 ? LARGE : `d${String(n % DESTINATIONS).padStart(5, '0')}.example`),
    dueIn: (n) => DUE_IN + (n / messages) * HOUR,
  })
  await close()
  say(`filled with ${messages} messages in ${((performance.now() - began) / 1_000).toFixed(0)} s`)
}
