/** The whole listing as JSON beside that of Postfix, and the first pages of a listing. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ANY_MESSAGE, type QueueFilter } from '../../../src/store/message-conditions.ts'
import { openStoreReadOnly } from '../../../src/store/sqlite/open-store.ts'
import { freePort, greeted, output } from '../child.ts'
import { ROOT } from '../deferd.ts'
import { ratios, type Figure } from '../figures/figure.ts'
import { FILLED_DESTINATION, fillQueue, MESSAGES } from '../figures/filled-queue.ts'
import type { Part, Setting } from '../figures/subject.ts'
import { send } from '../own-source.ts'
import { postfixIsMissing, startPostfix } from '../postfix.ts'
import { processorSeconds } from '../processor-time.ts'
import { timeCommand, type Timed } from '../timed-command.ts'

/** Deferred messages of Postfix, which takes milliseconds to accept each of them. */
const POSTFIX_MESSAGES = 50_000
const POSTFIX_SESSIONS = 50
/** Longest time in which its queue manager must have deferred them, in seconds. */
const DEFER_LIMIT = 600
/** Seconds per message, beside Postfix. */
const MOST_RATIO = 0.1
/** Messages on a first page, first pages in a round, and the most CPU time of one, in ms. */
const PAGE = 50
const PAGES = 500
const MOST_PAGE = 5

const MICRO = 1_000_000

/** A listing as a command. */
interface Listing {
  /** Messages that it prints. */
  readonly messages: number
  /** CPU time and duration. */
  readonly time: () => Promise<Timed>
}

export const LISTING: Part = {
  name: 'listing',
  about: 'a million queued: the whole listing as JSON beside postqueue -j of 50,000 messages',
  measure: async (setting) => {
    const own = await listingOfDeferd(setting)
    const postfix = await listingOfPostfix(setting)
    const times: { readonly own: Timed[]; readonly postfix: Timed[] } = { own: [], postfix: [] }
    for (let round = 0; round < setting.rounds; round++) {
      times.own.push(await perMessage(own))
      if (postfix !== null) times.postfix.push(await perMessage(postfix))
    }
    return (['cpu', 'elapsed'] as const).flatMap((kind) => figuresOf(kind, times))
  },
}

function figuresOf(kind: keyof Timed, { own, postfix }: { readonly own: readonly Timed[]; readonly postfix: readonly Timed[] }): Figure[] {
  const what = kind === 'cpu' ? 'CPU time' : 'time'
  const plain = (name: string, times: readonly Timed[]): Figure => ({
    name: `${name}, ${what} per message`,
    unit: 'µs',
    target: null,
    values: times.map((one) => one[kind] * MICRO),
  })
  const of = (times: readonly Timed[]): number[] => times.map((one) => one[kind])
  const values = ratios(of(own), of(postfix))
  const ratio: Figure = { name: `${what} per message, deferd ÷ Postfix`, unit: '', target: { most: MOST_RATIO }, values }
  return [plain('queue list --json', own), ...(postfix.length === 0 ? [] : [plain('postqueue -j', postfix), ratio])]
}

async function perMessage({ messages, time }: Listing): Promise<Timed> {
  const { cpu, elapsed } = await time()
  return { cpu: cpu / messages, elapsed: elapsed / messages }
}

async function listingOfDeferd(setting: Setting): Promise<Listing> {
  const queue = await fillQueue(setting)
  const list = [join(ROOT, 'bin/deferd.js'), 'queue', 'list', '-o', `queue_directory=${queue}`]
  const messages = Number(await output(process.execPath, [...list, '--count'], '/', setting.signal))
  if (messages !== setting.sized(MESSAGES)) throw new Error(`the queue lists ${messages} messages, not ${setting.sized(MESSAGES)}`)
  return { messages, time: () => timeCommand(process.execPath, [...list, '--json'], setting.signal) }
}

/** A private Postfix with deferred mail; null when it cannot run here. */
async function listingOfPostfix(setting: Setting): Promise<Listing | null> {
  const missing = await postfixIsMissing()
  if (missing !== null) {
    setting.say(`without Postfix: ${missing}`)
    return null
  }
  const folder = join(setting.folder, 'postfix')
  mkdirSync(folder)
  const listen = await freePort()
  const instance = await startPostfix(folder, { listen, nextHop: listen }, { defer_transports: 'smtp', in_flow_delay: '0' })
  setting.undo.defer(() => instance.stop())
  await greeted(instance, listen, setting.signal)
  const messages = setting.sized(POSTFIX_MESSAGES)
  const began = performance.now()
  await send({ port: listen, messages, sessions: POSTFIX_SESSIONS, bytes: 1_000, recipients: 1, connections: 'kept' })
  const list = ['-c', join(folder, 'etc'), '-j']
  await deferred(list, messages, setting.signal)
  setting.say(`Postfix has deferred ${messages} messages after ${((performance.now() - began) / 1_000).toFixed(0)} s`)
  const time = async (): Promise<Timed> => {
    // showq reads the queue, a process of the instance.
    const before = processorSeconds(instance.pid)
    const { cpu, elapsed } = await timeCommand('postqueue', list, setting.signal)
    return { cpu: cpu + processorSeconds(instance.pid) - before, elapsed }
  }
  return { messages, time }
}

/** Waits until a listing has so many messages in the deferred queue. */
async function deferred(list: readonly string[], messages: number, signal: AbortSignal): Promise<void> {
  for (let waited = 0; waited < DEFER_LIMIT; waited++) {
    const script = 'postqueue "$@" | grep -c \'"queue_name": "deferred"\' || true'
    const count = Number(await output('bash', ['-c', script, 'bash', ...list], '/', signal))
    if (count === messages) return
    await pause(1_000, undefined, { signal })
  }
  throw new Error(`Postfix has not deferred ${messages} messages in ${DEFER_LIMIT} s`)
}

/** First pages by filter and order. */
const FIRST_PAGES: readonly { readonly name: string; readonly filter: Partial<QueueFilter>; readonly newestFirst: boolean }[] = [
  { name: 'oldest', filter: {}, newestFirst: false },
  { name: 'newest', filter: {}, newestFirst: true },
  { name: 'one destination', filter: { destination: FILLED_DESTINATION }, newestFirst: false },
  { name: 'deferred, newest', filter: { queue: 'deferred' }, newestFirst: true },
]

export const FIRST_PAGE: Part = {
  name: 'first-pages',
  about: 'a million queued: CPU time of the first 50 messages of a listing',
  measure: async (setting) => {
    const { reader, close } = openStoreReadOnly(await fillQueue(setting))
    setting.undo.defer(close)
    const figures: Figure[] = []
    for (const { name, filter, newestFirst } of FIRST_PAGES) {
      const read = () => reader.list({ ...ANY_MESSAGE, ...filter }, { after: 0, limit: PAGE, newestFirst })
      if ((await read()).length === 0) throw new Error(`the first page "${name}" is empty`)
      const values: number[] = []
      for (let round = 0; round < setting.rounds; round++) values.push(await meanTime(read))
      figures.push({ name: `first page, ${name}`, unit: 'ms', target: { most: MOST_PAGE }, values })
    }
    return figures
  },
}

/** Mean CPU time of this thread, in which the reader works; a single page is shorter than the clock's resolution. */
async function meanTime(read: () => Promise<unknown>): Promise<number> {
  const before = process.threadCpuUsage()
  for (let n = 0; n < PAGES; n++) await read()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000 / PAGES
}
