/** Memory that a waiting destination, a connection of a client and a queued message take in a daemon, each with a budget. */
import { statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { fillBacklog } from '../../../test/support/backlog.ts'
import { repliesOf } from '../../../test/support/smtp-load.ts'
import { openStore } from '../../../src/store/sqlite/open-store.ts'
import type { Figure } from '../figures/figure.ts'
import type { Part, Setting, Subject } from '../figures/subject.ts'
import type { HeapUse } from './heap-probe.ts'
import { startProbedDaemon } from './probed-daemon.ts'

/** Bytes on the heap of the daemon. Messages are in the store: a queued one takes nothing. */
const MOST_DESTINATION = 1_000
const MOST_MESSAGE = 20
const MOST_CONNECTION = 12_000
/** Bytes on the disk that a queued message of 1,000 bytes takes. */
const MOST_ON_DISK = 2_000

/** Destinations, messages and connections that are compared. */
const DESTINATIONS = [0, 10_000, 50_000]
const MESSAGES = [0, 100_000, 400_000]
const CONNECTIONS = [0, 300, 1_000]
/** Destinations of the messages, and bytes of their content. */
const FEW = 100
const BYTES = 1_000
const HOUR = 3_600_000

/** Memory with a number of units. */
interface Point {
  readonly count: number
  readonly use: HeapUse
}

/** Figures of the memory at each count, and per unit from the first count to the last. */
function figuresOf(what: string, unit: string, most: number, points: readonly Point[]): readonly Figure[] {
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) throw new Error('nothing was measured')
  const perUnit = (of: keyof HeapUse): number => (last.use[of] - first.use[of]) / (last.count - first.count)
  const figure = (name: string, size: string, value: number, target: Figure['target'] = null): Figure => ({
    name,
    unit: size,
    target,
    values: [value],
  })
  return [
    ...points.map(({ count, use }) => figure(`heap, ${count} ${what}`, 'MB', use.heap / 1_000_000)),
    ...points.map(({ count, use }) => figure(`RSS, ${count} ${what}`, 'MB', use.resident / 1_000_000)),
    figure(`heap per ${unit}`, 'bytes', perUnit('heap'), { most }),
    figure(`RSS per ${unit}`, 'bytes', perUnit('resident')),
  ]
}

/** Memory of daemons on queues with so many messages, none of which is due. */
async function withQueues(
  setting: Setting,
  counts: readonly number[],
  destinationsOf: (count: number) => number,
): Promise<readonly Point[]> {
  const points: Point[] = []
  for (const count of counts) {
    const queue = join(setting.folder, `queue-${count}`)
    const { store, close } = await openStore(queue, { threads: false, create: true })
    const destinations = destinationsOf(count)
    await fillBacklog(store, {
      messages: count,
      now: Date.now(),
      destinationOf: (n) => `d${n % destinations}.example`,
      dueIn: (n) => 12 * HOUR + n,
      bytes: BYTES,
    })
    await close()
    const { daemon, use } = await startProbedDaemon(setting, `daemon-${count}`, { relayhost: '', queue_directory: queue })
    points.push({ count, use: await use() })
    await daemon.child.stop()
  }
  return points
}

const sizesOf = (setting: Setting, counts: readonly number[]): readonly number[] =>
  counts.map((count) => (count === 0 ? 0 : setting.sized(count)))

const WAITING_DESTINATIONS: Part = {
  name: 'destinations',
  about: 'destinations with one deferred message each: heap and RSS at several counts',
  measure: async (setting) => {
    const points = await withQueues(setting, sizesOf(setting, DESTINATIONS), (count) => count)
    return figuresOf('waiting destinations', 'waiting destination', MOST_DESTINATION, points)
  },
}

const QUEUED_MESSAGES: Part = {
  name: 'messages',
  about: `deferred messages of ${BYTES} bytes for ${FEW} destinations: heap, RSS and disk at several counts`,
  measure: async (setting) => {
    const counts = sizesOf(setting, MESSAGES)
    const points = await withQueues(setting, counts, () => FEW)
    const [none = 0, most = 0] = [counts[0], counts.at(-1)]
    const size = (count: number): number => statSync(join(setting.folder, `queue-${count}`, 'queue.db')).size
    const onDisk: Figure = {
      name: 'disk per queued message',
      unit: 'bytes',
      target: { most: MOST_ON_DISK },
      values: [(size(most) - size(none)) / (most - none)],
    }
    return [...figuresOf('queued messages', 'queued message', MOST_MESSAGE, points), onDisk]
  },
}

const IDLE_CONNECTIONS: Part = {
  name: 'connections',
  about: 'connections of clients that are idle after EHLO: heap and RSS at several counts',
  measure: async (setting) => {
    const { daemon, use } = await startProbedDaemon(setting, 'daemon', { smtpd_client_connection_count_limit: '0' })
    const sockets: Socket[] = []
    setting.undo.defer(() => sockets.forEach((socket) => socket.destroy()))
    const points: Point[] = []
    for (const count of sizesOf(setting, CONNECTIONS)) {
      while (sockets.length < count) sockets.push(await greetedSocket(daemon.port))
      points.push({ count, use: await use() })
    }
    return figuresOf('idle connections', 'idle connection', MOST_CONNECTION, points)
  },
}

async function greetedSocket(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const next = repliesOf(socket)
  await next()
  socket.write('EHLO load.test\r\n')
  const reply = (await next()) ?? 'nothing'
  if (!reply.startsWith('250')) throw new Error(`the relay said: ${reply}`)
  return socket
}

export const MEMORY: Subject = {
  name: 'memory',
  about: `Measures the memory that a waiting destination, a queued message and an idle
connection of a client take in a daemon: reachable bytes of its main thread, and
RSS. Each has a budget.`,
  missing: () => null,
  parts: [WAITING_DESTINATIONS, QUEUED_MESSAGES, IDLE_CONNECTIONS],
}
