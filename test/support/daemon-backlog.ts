/**
 * Mail of a high class at a real daemon beside a backlog of a low one, both of several shares: times from the reply to the submission to the begin
 * of the delivery.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openPostgresStore } from '../../src/store/postgres/open-store.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { MINUTE, SECOND, type Duration } from '../../src/system/clock.ts'
import { fillBacklog } from './backlog.ts'
import { until } from './node-cluster.ts'
import { PROVIDER_ADDRESS, startProviderZone } from './nodes/provider-zone.ts'
import { portBelowEphemeral } from './ports.ts'
import { urlOf } from './postgres-queue.ts'
import { startPostgres, type PostgresServer } from './postgres-server.ts'
import { realClock } from './real-clock.ts'
import { RemoteLedger } from './remote-ledger.ts'
import { SmtpLoad } from './smtp-load.ts'
import { DaemonFolder, type StartedProcess } from './started-daemon.ts'

/** Duration of a delivery, and window of a destination, as in submission with a model (bulk-backlog). */
const DELIVERY: Duration = SECOND / 2
const WINDOW = 20
/** Weights of the shares of bulk mail, each of which has a third of it. */
export const WEIGHTS: readonly number[] = [3, 1, 1]

export interface DaemonBacklog {
  readonly bulk: number
  /** Number of destinations, among which bulk and fast mail are spread. */
  readonly destinations: number
  /** Number of fast messages, two per second. */
  readonly fast: number
  /** Event before the fast mail comes: SIGKILL and a new start, or an outage of the host, after which all bulk mail is due together. */
  readonly after: 'nothing' | 'kill' | 'outage'
  readonly engine: 'sqlite' | 'postgres'
  /** Duration of a delivery of bulk mail; that of fast mail without it. */
  readonly bulkTakes?: Duration
}

export interface DaemonFigures {
  /** Percentiles of the time from the reply to a fast message to the begin of its delivery, in ms. */
  readonly p50: Duration
  readonly p99: Duration
  /** Bulk messages whose deliveries began per second meanwhile. */
  readonly bulkPerSecond: number
  /** Starts of the shares of bulk mail in each full minute meanwhile, by the number of the share. */
  readonly minutes: readonly (readonly number[])[]
}

const CONFIG = `
fair_share = "yes"
share_key = "sender_domain"
share_weight_maps = { ${WEIGHTS.map((weight, n) => `"bulk${n}.example" = "${weight}"`).join(', ')} }
sender_class_maps = { "@fast0.example" = "fast", "@fast1.example" = "fast" }
default_class = "bulk"

[class.fast]
weight = 100
reserve = "5%"

[class.bulk]
weight = 1
`

export async function besideBacklogOfDaemon(given: DaemonBacklog): Promise<DaemonFigures> {
  const { bulk, destinations, fast, after, engine, bulkTakes = DELIVERY } = given
  const [folder, far, load, zone] = [new DaemonFolder(), new RemoteLedger(), new SmtpLoad(), await startProviderZone()]
  const destinationOf = (n: number): string => `d${n % destinations}.customer.example`
  const server = engine === 'postgres' ? await startPostgres() : null
  far.delayOf = ([first = '']) => (isBulk(first) ? bulkTakes : DELIVERY)
  if (after === 'outage') far.refusal = '421 4.3.2 the host is down'
  try {
    const { store, close } = await emptyQueue(join(folder.path, 'queue'), server)
    await fill(store, { bulk, destinationOf })
    await close()
    writeFileSync(join(folder.path, 'deferd.toml'), CONFIG)
    const port = await portBelowEphemeral()
    const settings = {
      ...(after === 'outage' ? { minimal_backoff_time: '10s', maximal_backoff_time: '10s' } : {}),
      smtpd_listen: `127.0.0.1:${port}`,
      relayhost: '',
      dns_servers: zone.address,
      smtp_tcp_port: String(await far.listen(PROVIDER_ADDRESS)),
      smtp_allow_private_addresses: 'yes',
      smtp_tls_mta_sts: 'no',
      inet_protocols: 'ipv4',
      default_destination_concurrency_limit: String(WINDOW),
      initial_destination_concurrency: String(WINDOW),
      ...(server === null ? {} : { queue_database: server.url(), queue_database_durability: 'primary', node_name: 'n1' }),
    }
    const start = async (): Promise<StartedProcess> => {
      const daemon = folder.run(['start', '--config', join(folder.path, 'deferd.toml')], settings)
      await daemon.prints('queue directory')
      if (after === 'outage') await until('dead', 60_000, () => far.connections.length >= WINDOW)
      far.refusal = null
      const before = far.begun.length
      await until('delivering', 120_000, () => far.begun.length >= before + 2 * WINDOW)
      return daemon
    }
    const daemon = await start()
    if (after === 'kill') {
      daemon.child.kill('SIGKILL')
      await daemon.ended
      await start()
    }
    load.port = port
    return await figures({ far, load, destinationOf, fast })
  } finally {
    await load.close()
    await folder.close()
    await Promise.all([far.close(), zone.close(), server?.remove()])
  }
}

const emptyQueue = (
  directory: string,
  server: PostgresServer | null,
): Promise<{ readonly store: QueueStore; readonly close: () => Promise<void> }> =>
  server === null
    ? openStore(directory, { threads: false, create: true })
    : openPostgresStore({
        url: urlOf(server.url()),
        durability: 'primary',
        labels: { name: 'filler', program: '1.0.0', settings: '', hostname: '', draining: false },
        clock: realClock,
      })

/** Puts bulk mail of all shares into a queue, of which all is due. */
async function fill(
  store: QueueStore,
  { bulk, destinationOf }: { readonly bulk: number; readonly destinationOf: (n: number) => string },
): Promise<void> {
  const ofClass = { name: 'bulk', band: 1 }
  await store.records.classBands.add(ofClass)
  await fillBacklog(store, {
    messages: bulk,
    now: Date.now(),
    destinationOf,
    recipientOf: (n) => `bulk${n % WEIGHTS.length}-${n}@${destinationOf(n)}`,
    shareOf: (n) => `bulk${n % WEIGHTS.length}.example`,
    dueIn: () => 0,
    bytes: 100,
    ofClass,
  })
}

const isBulk = (address: string): boolean => address.startsWith('bulk')

interface Running {
  readonly far: RemoteLedger
  readonly load: SmtpLoad
  readonly destinationOf: (n: number) => string
  readonly fast: number
}

async function figures({ far, load, destinationOf, fast }: Running): Promise<DaemonFigures> {
  const from = far.begun.length
  const begunAt = Date.now()
  load.pace = SECOND / 2
  load.senderOf = (number) => `app@fast${number % 2}.example`
  load.start(1, (number) => {
    if (load.acknowledged.size >= fast - 1) load.pace = null
    return `fast-${number}@${destinationOf(number * 7)}`
  })
  await until('submitted', fast * SECOND + 120_000, () => load.acknowledged.size >= fast)
  const lasted = Date.now() - begunAt
  const meanwhile = far.begun.slice(from).flatMap(({ at, to }) => to.filter(isBulk).map((address) => ({ at, address })))
  const started = (number: number): number =>
    far.begun.find(({ to }) => to.some((address) => address.startsWith(`fast-${number}@`)))?.at ?? Infinity
  await until('begun', 60_000, () => [...load.acknowledged.keys()].every((number) => started(number) < Infinity))
  const waits = [...load.acknowledgedAt].map(([number, at]) => Math.max(0, started(number) - at)).toSorted((a, b) => a - b)
  const at = (part: number): Duration => waits[Math.floor(waits.length * part)] ?? Infinity
  const minutes = Map.groupBy(meanwhile, (one) => Math.floor((one.at - begunAt) / MINUTE))
  return {
    p50: at(0.5),
    p99: at(0.99),
    bulkPerSecond: (meanwhile.length * SECOND) / lasted,
    minutes: Array.from({ length: Math.floor(lasted / MINUTE) }, (_, minute) =>
      WEIGHTS.map((_weight, n) => (minutes.get(minute) ?? []).filter(({ address }) => address.startsWith(`bulk${n}-`)).length),
    ),
  }
}
