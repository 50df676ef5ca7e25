/**
 * Mail that one node accepts for a destination of another: the time from the end of the data until the owner begins to deliver.
 */
import { connect, type Server } from 'node:net'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { PostgresServer } from '../../../test/support/postgres-server.ts'
import { repliesOf } from '../../../test/support/smtp-load.ts'
import { shardOf } from '../../../src/store/membership/shards.ts'
import type { BenchDaemon } from '../figures/bench-daemon.ts'
import { percentile, type Figure } from '../figures/figure.ts'
import type { Part, Setting } from '../figures/subject.ts'
import { freePort } from '../child.ts'
import { openSink } from '../own-sink.ts'
import { shardsOf, shared, startNode } from './bench-node.ts'
import { startBenchServer } from './bench-server.ts'

/** Loopback addresses of the sink: each is a destination, so that each node owns some. */
const ADDRESSES = 40
/** Pause between two messages, in ms: the nodes are idle. */
const PAUSE = 60

export const WAKE_UP: Part = {
  name: 'wake-up',
  about: 'accepted by one node, delivered by another: time until the delivery begins',
  measure: async (setting) => {
    const server = await startBenchServer(setting, setting.folder)
    const sink = await startTimedSink(setting)
    const notified = await delays(setting, { server, sink, name: 'notified', role: 'postgres' })
    // A user without the right to notify: the owner finds the mail by its request for arrivals alone.
    await server.query(`create role quiet login; revoke execute on function pg_notify(text, text) from public`, 'postgres')
    const polled = await delays(setting, { server, sink, name: 'polled', role: 'quiet' })
    return [
      figure('with NOTIFY, p50', notified, 0.5),
      figure('with NOTIFY, p99', notified, 0.99, 25),
      figure('polling alone, p50', polled, 0.5),
      figure('polling alone, p99', polled, 0.99, 300),
    ]
  },
}

const figure = (name: string, rounds: readonly (readonly number[])[], part: number, most?: number): Figure => ({
  name: `end of data → delivery begins, ${name}`,
  unit: 'ms',
  target: most === undefined ? null : { most },
  values: rounds.map((times) => percentile(times, part)),
})

interface TimedSink {
  readonly port: number
  /** The time of the next MAIL command. */
  begun(): Promise<number>
}

async function startTimedSink({ undo }: Setting): Promise<TimedSink> {
  const port = await freePort()
  const waiting: ((at: number) => void)[] = []
  const begun = (): void => waiting.shift()?.(performance.now())
  const server: Server = openSink({ arrived: () => undefined })
  // On a kept connection, MAIL comes in one packet with the commands before it.
  server.on('connection', (socket) => socket.on('data', (bytes) => /^MAIL /m.test(bytes.toString('latin1')) && begun()))
  await once(server.listen(port, '0.0.0.0'), 'listening')
  undo.defer(() => void server.close())
  return { port, begun: () => new Promise((resolve) => void waiting.push(resolve)) }
}

interface Trial {
  readonly server: PostgresServer
  readonly sink: TimedSink
  readonly name: string
  /** User of the database. */
  readonly role: string
}

async function delays(setting: Setting, { server, sink, name, role }: Trial): Promise<readonly (readonly number[])[]> {
  await server.createDatabase(name)
  await server.query(`alter database ${name} owner to ${role}; `)
  await server.query(`revoke execute on function pg_notify(text, text) from public`, name)
  const url = server.url(name).replace('postgres@', `${role}@`)
  const names = [`${name}1`, `${name}2`] as const
  const routes = Array.from({ length: ADDRESSES }, (_, n) => [`d${n}.example`, `smtp:[127.0.0.${n + 1}]:${sink.port}`] as const)
  const settings = { relayhost: '', transport_maps: `inline:{${routes.map(([domain, route]) => `${domain}=${route}`).join(', ')}}` }
  const [first] = [await startNode(setting, names[0], url, settings), await startNode(setting, names[1], url, settings)]
  await shared(server, name, names)
  const domains = await domainsOf(names[1], () => shardsOf(server, name), routes)
  await timesOf(first, { sink, domains, messages: 20 })
  const rounds: number[][] = []
  for (let round = 0; round < setting.rounds; round++) rounds.push(await timesOf(first, { sink, domains, messages: setting.sized(200) }))
  return rounds
}

/** The domains whose destinations a node owns, as soon as there are three: it takes the shards of the first node a few at a time. */
async function domainsOf(
  node: string,
  ownersNow: () => ReturnType<typeof shardsOf>,
  routes: readonly (readonly [string, string])[],
): Promise<readonly string[]> {
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; await pause(200)) {
    const owners = await ownersNow()
    const domains = routes.filter(([, route]) => owners.get(shardOf(route)) === node).map(([domain]) => domain)
    if (domains.length >= 3) return domains
  }
  throw new Error(`${node} has not taken three of the destinations after 60 s`)
}

interface Mail {
  readonly sink: TimedSink
  readonly domains: readonly string[]
  readonly messages: number
}

async function timesOf({ port }: BenchDaemon, { sink, domains, messages }: Mail): Promise<number[]> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const next = repliesOf(socket)
  const ask = async (line: string, code: string): Promise<void> => {
    if (line !== '') socket.write(line)
    const reply = await next()
    if (reply?.startsWith(code) !== true) throw new Error(`the node said: ${reply ?? 'nothing'}`)
  }
  const times: number[] = []
  try {
    await ask('', '220')
    await ask('EHLO load.test\r\n', '250')
    for (let n = 0; n < messages; n++) {
      await ask('MAIL FROM:<sender@load.test>\r\n', '250')
      await ask(`RCPT TO:<${n}@${domains[n % domains.length]}>\r\n`, '250')
      await ask('DATA\r\n', '354')
      const [began, begun] = [performance.now(), sink.begun()]
      await ask('Subject: bench\r\n\r\nhello\r\n.\r\n', '250')
      times.push((await begun) - began)
      await pause(PAUSE * (0.5 + Math.random()))
    }
  } finally {
    socket.destroy()
  }
  return times
}
