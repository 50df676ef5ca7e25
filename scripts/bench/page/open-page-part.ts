/**
 * Two daemons on copies of one queue with a million messages, both with paced mail in turns: the page of one of them is open. And the
 * time to the first byte of every screen.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { askForLoginCode } from '../../../src/cli/queue-client/api-client.ts'
import { freePort, resultOf, startChild, type Child } from '../child.ts'
import { startDaemon, type BenchDaemon } from '../figures/bench-daemon.ts'
import { percentile, type Figure } from '../figures/figure.ts'
import { copyQueue, fillQueue } from '../figures/filled-queue.ts'
import type { Part, Setting } from '../figures/subject.ts'
import { processorSeconds, residentOf } from '../processor-time.ts'
import { startSink } from '../sink.ts'
import { rotated } from '../statistics.ts'
import { get, ROUND, type PageAccess, type PageUse, type Screen } from './page-clients.ts'
import { resultOfLoad, startPacedLoad } from '../paced-load.ts'

/** Messages per second. */
const RATE = 200
/** Length of a turn, and the part before it that is not counted, in seconds. */
const TURN = 60
const RAMP = 5

interface Contestant {
  readonly name: 'closed' | 'open'
  readonly daemon: BenchDaemon
  readonly access: PageAccess
}

interface Turn {
  /** CPU seconds of the daemon per second. */
  readonly cpu: number
  /** ms. */
  readonly greetings: readonly number[]
  readonly resident: number
  readonly use: PageUse | null
}

export const OPEN_PAGE: Part = {
  name: 'open',
  about: 'a million queued, 200 messages a second: the page open beside closed',
  measure: async (setting) => {
    const contestants = await startContestants(setting, 'closed', 'open')
    for (const one of contestants) await takeTurn(setting, one, setting.sized(20))
    const turns: Record<Contestant['name'], Turn[]> = { closed: [], open: [] }
    for (let round = 0; round < setting.rounds; round++)
      for (const one of rotated(contestants, round)) turns[one.name].push(await takeTurn(setting, one, setting.sized(TURN)))
    return figuresOf(turns)
  },
}

function figuresOf({ closed, open }: Readonly<Record<Contestant['name'], readonly Turn[]>>): Figure[] {
  const paired = (value: (open: Turn, closed: Turn) => number): number[] =>
    open.flatMap((turn, round) => (closed[round] === undefined ? [] : [value(turn, closed[round])]))
  const p99 = ({ greetings }: Turn): number => percentile(greetings, 0.99)
  const plain = (name: string, unit: string, values: number[]): Figure => ({ name, unit, target: null, values })
  return [
    plain(
      'CPU of the daemon, page closed',
      'ms/s',
      closed.map(({ cpu }) => cpu * 1_000),
    ),
    plain(
      'CPU of the daemon, page open',
      'ms/s',
      open.map(({ cpu }) => cpu * 1_000),
    ),
    { name: 'CPU, open ÷ closed', unit: '', target: { most: 1.05 }, values: paired((a, b) => a.cpu / b.cpu) },
    plain('greeting p99, page closed', 'ms', closed.map(p99)),
    plain('greeting p99, page open', 'ms', open.map(p99)),
    { name: 'greeting p99, open − closed', unit: 'ms', target: { most: 10 }, values: paired((a, b) => p99(a) - p99(b)) },
    plain(
      'RSS, page closed',
      'MB',
      closed.map(({ resident }) => resident),
    ),
    plain(
      'RSS, page open',
      'MB',
      open.map(({ resident }) => resident),
    ),
    { name: 'RSS, open − closed', unit: 'MB', target: { most: 30 }, values: paired((a, b) => a.resident - b.resident) },
    plain(
      'screens opened in a turn',
      '',
      open.map(({ use }) => use?.screens ?? 0),
    ),
    plain(
      'events of the streams in a turn',
      '',
      open.map(({ use }) => use?.events ?? 0),
    ),
  ]
}

async function takeTurn(setting: Setting, { name, daemon, access }: Contestant, seconds: number): Promise<Turn> {
  const { pid } = daemon.child
  const programs = new Map<string, Child>()
  /** Starts a program whose output is in a file of its name. */
  const started = async (file: string, start: (log: string) => Promise<Child>): Promise<Child> => {
    const log = join(setting.folder, file)
    const child = await start(log)
    programs.set(log, child)
    return child
  }
  try {
    const page = name === 'open' ? await started('page-clients', (log) => startPageClients(access, RAMP + seconds + RAMP, log)) : null
    const load = { port: daemon.port, rate: RATE, seconds: RAMP + seconds }
    const source = await started('source', (log) => startPacedLoad(load, log))
    await pause(RAMP * 1_000, undefined, { signal: setting.signal })
    const [before, began] = [processorSeconds(pid), performance.now()]
    await pause(seconds * 1_000, undefined, { signal: setting.signal })
    const cpu = (processorSeconds(pid) - before) / ((performance.now() - began) / 1_000)
    const resident = residentOf(pid)
    const sent = await resultOfLoad(source)
    return { cpu, resident, greetings: sent.greetings, use: page === null ? null : await resultOf<PageUse>(page) }
  } finally {
    for (const child of programs.values()) await child.stop()
    for (const log of programs.keys()) rmSync(log, { force: true })
  }
}

function startPageClients({ url, cookie }: Contestant['access'], seconds: number, log: string): Promise<Child> {
  const script = join(import.meta.dirname, 'page-clients.ts')
  return startChild('the clients of the page', { program: process.execPath, args: [script, url, cookie, String(seconds)], cwd: '/' }, log)
}

/** Starts daemons on copies of the filled queue. */
async function startContestants<Name extends Contestant['name']>(
  setting: Setting,
  ...names: readonly Name[]
): Promise<readonly (Contestant & { readonly name: Name })[]> {
  const filled = await fillQueue(setting)
  const sink = await startSink(setting.folder, setting.signal)
  setting.undo.defer(() => sink.child.stop())
  const start = async (name: Name) => {
    const queue = copyQueue(filled, join(setting.folder, `queue-${name}`))
    const page = await freePort()
    const daemon = await startDaemon(setting, name, {
      queue_directory: queue,
      admin_listen: `127.0.0.1:${page}`,
      relayhost: '',
      transport_maps: `inline:{sink.test=smtp:[127.0.0.1]:${sink.port}}`,
    })
    const url = `http://127.0.0.1:${page}/`
    return { name, daemon, access: { url, cookie: await logIn(queue, url) } }
  }
  const started: Awaited<ReturnType<typeof start>>[] = []
  for (const name of names) started.push(await start(name))
  return started
}

/** The cookie of a new session. */
async function logIn(queue: string, url: string): Promise<string> {
  const code = await loginCode(queue)
  const response = await fetch(`${url}login`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: url.slice(0, -1), 'content-type': 'application/x-www-form-urlencoded' },
    body: `code=${code}`,
  })
  const cookie = response.headers.get('set-cookie')?.split(';', 1)[0]
  if (cookie === undefined) throw new Error(`the login was answered with ${response.status}`)
  return cookie
}

/** A code of the daemon, which opens its socket after its SMTP port. */
async function loginCode(queue: string): Promise<string> {
  for (const deadline = performance.now() + 20_000; performance.now() < deadline; await pause(50)) {
    const made = await askForLoginCode(queue, { user: 'bench', role: 'operator', content: false })
    if (made !== null) return made.code
  }
  throw new Error('the daemon does not open its socket in 20 s')
}

/** Screens whose values depend on the whole queue, or that search without a hit. */
const MORE: readonly Screen[] = [
  { name: 'Now, 24 h', path: '?range=24h' },
  { name: 'Destinations by name', path: 'destinations?order=name' },
  { name: 'Destinations, a part of a name', path: 'destinations?name=*99.example*' },
  { name: 'Messages, older than', path: 'messages?older_than=1m' },
  { name: 'Messages, on hold', path: 'messages?queue=hold' },
  { name: 'Messages, never attempted', path: 'messages?queue=incoming' },
  { name: 'Messages, a sender', path: 'messages?sender=app7%40us.example' },
  { name: 'Messages, a sender without mail', path: 'messages?sender=nobody%40us.example' },
  { name: 'Messages, a recipient without mail', path: 'messages?recipient=nobody%40far.example' },
  { name: 'Messages, a reply', path: 'messages?reply=timed+out' },
  { name: 'Messages, a reply without mail', path: 'messages?reply=mailbox+full' },
  { name: 'History, a recipient without mail', path: 'history?recipient=nobody%40far.example' },
  { name: 'Search for an address', path: 'search?q=nobody%40far.example' },
  { name: 'Dry run, a destination', path: 'operations/new?operation=hold&scope=filter&destination=d00042.example' },
]
/** Not a screen that is read, but a count of all mail. */
const ALL: Screen = { name: 'Dry run, all mail', path: 'operations/new?operation=hold&scope=filter' }

export const SCREENS: Part = {
  name: 'screens',
  about: 'a million queued, 200 messages a second: time to the first byte of each screen',
  measure: async (setting) => {
    const [contestant] = await startContestants(setting, 'open')
    if (contestant === undefined) throw new Error('a daemon was started')
    const { daemon, access } = contestant
    const [, id = ''] = /href="(?:\.\/)?messages\/(\w+)/.exec((await get(access, 'messages')).body) ?? []
    const seconds = 10_000
    const source = await startPacedLoad({ port: daemon.port, rate: RATE, seconds }, join(setting.folder, 'source'))
    setting.undo.defer(() => source.stop())
    await pause(RAMP * 1_000)
    const timesOf = async ({ path }: Screen): Promise<readonly number[]> => {
      const times: number[] = []
      for (let round = 0; round < 3 * setting.rounds; round++) {
        times.push((await get(access, path.replace('{id}', id))).firstByte)
        await pause(100)
      }
      return times
    }
    // The daemon counts the queue after its start, and the first screen waits for that.
    const counted = await get(access, '')
    const figures: Figure[] = [{ name: 'Now, the first after a start', unit: 'ms', target: null, values: [counted.firstByte] }]
    for (const screen of [...ROUND, ...MORE, ALL]) {
      const target = screen === ALL ? null : { most: 300 }
      figures.push({ name: screen.name, unit: 'ms', target, values: await timesOf(screen) })
    }
    return figures
  },
}
