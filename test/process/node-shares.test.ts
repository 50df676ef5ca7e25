/** Classes and fair shares with several nodes on one queue in PostgreSQL: parts by weights at each destination, and another class by a command. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon } from '../../src/daemon/daemon.ts'
import { Connection } from '../../src/store/postgres/session/database-connection.ts'
import { claimDue, claimListed } from '../../src/store/postgres/writing/queries.ts'
import { messageIdOf } from '../../src/store/sql/id-ranges.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { connectTo, urlOf } from '../support/postgres-queue.ts'
import { reasonWithoutPostgres, startPostgres } from '../support/postgres-server.ts'
import { RemoteLedger } from '../support/remote-ledger.ts'
import { DaemonFolder } from '../support/started-daemon.ts'

const reason = reasonWithoutPostgres()
/** So many that each of two nodes owns some of them. */
const DESTINATIONS = 16
const WINDOW = 2
/** Recipients of a destination that are in memory or in delivery before the others come: a claim, what waits beside it, and the window. */
const AHEAD = 10 + 3 * WINDOW
const SETTINGS = {
  node_lease: '10s',
  initial_destination_concurrency: String(WINDOW),
  default_destination_concurrency_limit: String(WINDOW),
}

const closers: (() => unknown)[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const close of closers.splice(0).toReversed()) await close()
})

/** Mail of one kind for each destination. The local parts of its recipients begin with the kind. */
interface Kind {
  readonly name: string
  readonly count: number
}

/** Two nodes whose remote servers do not answer the final dot before `open`, with mail of some kinds at each destination, in this order. */
async function closedCluster(settings: Readonly<Record<string, string>>, tables: string, kinds: readonly Kind[]) {
  const cluster = await NodeCluster.open({ ...SETTINGS, ...settings }, {}, DESTINATIONS, tables)
  closers.push(() => cluster.close())
  const gate = Promise.withResolvers<void>()
  closers.push(() => gate.resolve())
  for (const far of cluster.far) far.gate = gate.promise
  const [node] = await cluster.startAll('n1', 'n2')
  if (node === undefined) throw new Error('two nodes were started')
  // A destination that changes its node while its deliveries last has the window of both.
  await cluster.balanced('n1', 'n2')
  const { load } = node
  // Those of the first kind for all destinations in turn, then those of the next.
  const order = kinds.flatMap(({ name, count }) => Array.from({ length: count * DESTINATIONS }, () => name))
  const first = load.takeNumber() + 1
  const kindOf = (number: number): string => order[number - first] ?? order.at(-1) ?? ''
  load.senderOf = (number) => `app@${kindOf(number)}.example`
  load.start(4, (number) => {
    if (number - first >= order.length - 1) load.pace = null
    return `${kindOf(number)}-${number}@d${number % DESTINATIONS}.example`
  })
  await until('submitted', 180_000, () => load.pace === null && load.sessions === 0)
  return { cluster, open: () => gate.resolve(), accepted: load.acknowledged.size }
}

/** The kinds of the recipients of a remote server, in the order in which their deliveries began. */
const begunAt = (far: RemoteLedger): readonly string[] => far.begun.flatMap(({ to }) => to.map((address) => address.replace(/-.*/, '')))

const countOf = (kinds: readonly string[], kind: string): number => kinds.filter((one) => one === kind).length

describe.skipIf(reason !== null)(`shares of several nodes${reason === null ? '' : ` (skipped: ${reason})`}`, { timeout: 400_000 }, () => {
  test('each destination has the parts 3:1:1 of its recipients, whichever node it belongs to', async () => {
    const { cluster, open, accepted } = await closedCluster(
      { fair_share: 'yes', share_key: 'sender_domain' },
      '[share_weight_maps]\n"shop.example" = "3"\n',
      [
        { name: 'news', count: 24 },
        { name: 'app', count: 10 },
        { name: 'shop', count: 24 },
      ],
    )
    const listed = (await cluster.says('queue', 'shares', '--json', '--config', cluster.config)).trim().split('\n')
    const shares = new Map(listed.map((line) => JSON.parse(line) as { key: string; weight: number }).map((one) => [one.key, one.weight]))
    expect(Object.fromEntries(shares)).toEqual({ 'news.example': 1, 'app.example': 1, 'shop.example': 3 })
    await inFlightEverywhere(cluster, WINDOW * DESTINATIONS)
    open()
    await until('delivered', 180_000, () => cluster.delivered().size === accepted)
    for (const far of cluster.far) {
      const late = begunAt(far).slice(AHEAD, AHEAD + 30)
      // 18, 6 and 6, but for the recipients of a claim.
      expect(countOf(late, 'shop')).toBeGreaterThanOrEqual(14)
      expect(countOf(late, 'app')).toBeGreaterThanOrEqual(3)
      expect(countOf(late, 'news')).toBeGreaterThanOrEqual(3)
    }
  })

  test('mail that gets another class at one machine has its turns in that class at all nodes', async () => {
    const { cluster, open, accepted } = await closedCluster(
      { default_class: 'bulk' },
      '[class.fast]\nweight = 100\n\n[class.bulk]\nweight = 1\n',
      [
        { name: 'news', count: 16 },
        { name: 'alert', count: 4 },
      ],
    )
    const reclass = ['queue', 'reclass', '--sender', '*@alert.example', 'fast', '--json', '--config', cluster.config]
    const answer = JSON.parse(await cluster.says(...reclass)) as { readonly changed: number }
    expect(answer.changed).toBeGreaterThanOrEqual(4 * DESTINATIONS)
    const alerts = async (): Promise<readonly { class: string; sender: string }[]> =>
      (await cluster.says('queue', 'list', '--json', '--class', 'fast', '--config', cluster.config))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { class: string; sender: string })
    expect((await alerts()).every((one) => one.class === 'fast' && one.sender === 'app@alert.example')).toBe(true)
    // Claimed again, each by the node that owns its destination, as far as memory has room beside what waits there.
    await until('in memory', 120_000, async () => {
      const short = await cluster.server.query(
        `select destination from recipient r join message m on m.id = ${messageIdOf('r.id')} where m.class = 'fast' group by destination
         having count(*) filter (where leased_by is null) > 0 and count(*) filter (where leased_by is not null) < ${2 * WINDOW}`,
      )
      return short.length === 0
    })
    open()
    await until('delivered', 180_000, () => cluster.delivered().size === accepted)
    for (const far of cluster.far) {
      const begun = begunAt(far)
      expect(begun.slice(0, WINDOW)).toEqual(['news', 'news'])
      // Four, or five where a client was late; another one of the lower class may come between.
      expect(begun.lastIndexOf('alert')).toBeLessThan(WINDOW + 7)
      expect(countOf(begun, 'news')).toBeGreaterThanOrEqual(16)
    }
    expect([...cluster.delivered().values()].every((times) => times === 1)).toBe(true)
  })

  const withShares = { fair_share: 'yes', share_key: 'sender_domain' }
  test.each([
    { shares: 'with shares', settings: withShares },
    { shares: 'without shares', settings: { qmgr_message_active_limit: '20' } },
  ])(
    'mail that an operation has locked when its turn comes has it later, and is not asked for without a pause, $shares',
    async ({ settings }) => {
      const { server, far, client } = await openDaemon({ ...settings, ...SETTINGS })
      const gate = Promise.withResolvers<void>()
      closers.push(() => gate.resolve())
      far.gate = gate.promise
      for (let n = 1; n <= 60; n++) await client.sendMail({ ...TEXT, from: `app@s${n % 3}.example`, to: 'ann@far.example', ...numbered(n) })
      const operator = await connectTo(urlOf(server.url()))
      closers.push(() => operator.end())
      // Longer than a session of a command may keep its locks.
      await operator.command('set idle_in_transaction_session_timeout = 0')
      await operator.command('begin')
      const locked = await operator.query(`select id from recipient where state = 'waiting' order by due_at limit 5 for update`)
      expect(locked.length).toBe(5)
      gate.resolve()
      await until('the others are delivered', 60_000, () => far.delivered.size === 55)
      const queries = vi.spyOn(Connection.prototype, 'query')
      const claims = (): number => queries.mock.calls.filter(([text]) => text === claimDue || text === claimListed).length
      await until('they are claimed again', 60_000, () => claims() > 0)
      const [before, begun] = [claims(), performance.now()]
      await sleep(3_000)
      // One a second; without a pause there are hundreds.
      expect(claims() - before).toBeLessThanOrEqual(10 * ((performance.now() - begun) / 1_000))
      await operator.command('rollback')
      await until('all are delivered', 30_000, () => far.delivered.size === 60)
      expect([...far.delivered.values()].every((times) => times === 1)).toBe(true)
    },
  )

  test('a message costs the statements that it costs without shares', async () => {
    expect(await statementsWith(withShares)).toEqual(await statementsWith({}))
  })
})

/** Waits until the listing has so many recipients in delivery, asked at a machine without a daemon and at each node. */
async function inFlightEverywhere(cluster: NodeCluster, count: number): Promise<void> {
  const folders = [undefined, ...[...cluster.nodes.values()].map(({ folder }) => folder)]
  for (const [n, folder] of folders.entries())
    await until(`${count} in delivery, asked at place ${n}`, 60_000, async () => {
      const { code, out, err } = await cluster.run(['queue', 'shares', '--json', '--config', cluster.config], {}, folder).ended
      if (code !== 0) throw new Error(`deferd queue shares ended with ${code}: ${err}`)
      const rows = out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { in_flight: number })
      return rows.reduce((sum, one) => sum + one.in_flight, 0) === count
    })
}

/** Messages whose statements are counted. */
const COUNTED = 10

const TEXT = { text: 'hi' }
const numbered = (n: number) => ({ headers: { 'X-Number': String(n) } })

/** A daemon of its own queue, its only next hop, and a client. */
async function openDaemon(settings: Readonly<Record<string, string>>) {
  const server = await startPostgres()
  closers.push(() => server.remove())
  const [far, folder] = [new RemoteLedger(), new DaemonFolder()]
  closers.push(() => folder.close())
  const hop = `[127.0.0.1]:${await far.listen()}`
  closers.push(() => far.close())
  const overrides = Object.entries({
    queue_directory: folder.path,
    queue_database: server.url(),
    queue_database_durability: 'primary',
    node_name: 'n1',
    smtpd_listen: `127.0.0.1:${await portBelowEphemeral()}`,
    relayhost: hop,
    minimal_backoff_time: '1s',
    maximal_backoff_time: '1s',
    ...settings,
  }).map(([name, value]) => `${name}=${value}`)
  const daemon = await startDaemon({ loaded: configFrom({}, 'relay.example', { overrides }), events: new Events(() => systemClock.now()) })
  closers.push(() => daemon.stop())
  const client = createTransport({ host: '127.0.0.1', port: daemon.listeners[0]?.port ?? 0, ignoreTLS: true })
  return { server, far, client }
}

/** Statements per message that change messages and recipients, for messages one after the other, each of which is delivered at its second attempt. */
async function statementsWith(settings: Readonly<Record<string, string>>): Promise<ReadonlyMap<string, number>> {
  const { server, far, client } = await openDaemon(settings)
  const left = async (): Promise<number> => Number((await server.query('select count(*)::int as n from message'))[0]?.['n'])
  const queries = vi.spyOn(Connection.prototype, 'query')
  try {
    for (let n = 1; n <= COUNTED; n++) {
      await client.sendMail({ ...TEXT, from: 'app@us.example', to: `defer-${n}@far.example`, ...numbered(n) })
      await until(`message ${n} has left`, 60_000, async () => far.delivered.has(n) && (await left()) === 0)
    }
    const texts = queries.mock.calls.map(([text]) => text)
    const changes = texts.filter((text) => /\b(?:insert into|update|delete from)\s+(?:message|recipient)\b/.test(text))
    expect(changes.length).toBeGreaterThan(20)
    // Some run by the time, such as those that look for expired mail, and a claim may find none: more often on a loaded machine.
    const counts = [...Map.groupBy(changes, (text) => text)].map(([text, calls]) => [text, Math.round(calls.length / COUNTED)] as const)
    return new Map(counts.filter(([, perMessage]) => perMessage > 0))
  } finally {
    vi.restoreAllMocks()
  }
}
