/**
 * Races of cancellations against the begin of attempts, with three daemons on one queue in PostgreSQL. Each message is submitted at one node by the
 * API, due at once or shortly after, and cancelled at any node within the same time. Daemons may be killed meanwhile.
 */
import { seededRandom } from '../../../src/system/random.ts'
import { portBelowEphemeral } from '../ports.ts'
import { NodeCluster, until, type ClusterNode } from '../node-cluster.ts'

export interface NodeRaces {
  readonly races: number
  readonly kills: number
  /** Numbers of recipients. */
  readonly cancelled: number
  readonly tooLate: number
  /** Cancelled recipients that a daemon had delivered before it was removed from the queue, and before the cancellation: it could not record that. */
  readonly deliveredAtRemoval: number
  /** Number of daemons that were removed from the queue. */
  readonly removed: number
  /** Cancelled recipients to which a delivery began after the answer. */
  readonly begunAfter: readonly string[]
  /** Other cancelled recipients that were delivered. */
  readonly both: readonly string[]
  /** Recipients that were neither cancelled nor delivered. */
  readonly neither: readonly string[]
}

interface Answered {
  readonly at: number
  readonly cancelled: readonly string[]
  readonly tooLate: readonly string[]
}

/** The end of a daemon: its kill, or its removal from the queue, after which another node has its mail. */
interface End {
  readonly client: string
  readonly at: number
}

/** Races at the same time. */
const CLIENTS = 40
/** Longest time of a submission before its attempt, and before its cancellation, in ms. */
const LONGEST = 250
const PATIENCE = 120_000
const NAMES = ['n1', 'n2', 'n3']

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

interface Asked {
  readonly method: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

class Races {
  readonly answers: Answered[] = []
  readonly killed: End[] = []
  readonly #cluster: NodeCluster
  readonly #token: string
  readonly #draw: () => number
  #next = 1

  constructor(cluster: NodeCluster, token: string, seed: number) {
    this.#cluster = cluster
    this.#token = token
    this.#draw = seededRandom(seed).stream('races')
  }

  get races(): number {
    return this.#next - 1
  }

  /** Races until `isOver` says so. */
  async run(isOver: () => boolean): Promise<void> {
    const client = async (): Promise<void> => {
      while (!isOver()) await this.#race(this.#next++)
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
  }

  /** Kills daemons, one at a time, each of which starts again. */
  async kill(times: number): Promise<void> {
    for (let n = 0; n < times; n++) {
      await pause(this.#below(2_000))
      const node = this.#pick([...this.#cluster.nodes.values()])
      node.process.child.kill('SIGKILL')
      await node.process.ended
      this.killed.push({ client: `${node.name}.example`, at: Date.now() })
      await pause(this.#below(300))
      await this.#cluster.restart(node)
    }
  }

  #below(limit: number): number {
    return Math.floor(this.#draw() * limit)
  }

  #pick<T>(list: readonly T[]): T {
    const one = list[this.#below(list.length)]
    if (one === undefined) throw new Error('nothing to pick')
    return one
  }

  async #race(number: number): Promise<void> {
    const to = [0, 1].map((n) => `${this.#below(5) === 0 ? 'defer' : 'user'}-${number}-${n}@d${this.#below(6)}.example`)
    const release = this.#below(2) === 0 ? {} : { not_before: `${1 + this.#below(LONGEST)}ms` }
    const body = JSON.stringify({ from: 'app@us.example', to, text: 'hi', headers: { 'X-Number': String(number) }, ...release })
    const headers = { 'content-type': 'application/json', 'idempotency-key': `race-${number}` }
    const { queue_id: id } = (await this.#asked('', { method: 'POST', body, headers })) as { readonly queue_id: string }
    await pause(this.#below(LONGEST))
    const answer = await this.#asked(`/${id}`, { method: 'DELETE' })
    const addresses = (of: unknown) => (of as readonly { readonly recipient: string }[]).map(({ recipient }) => recipient)
    // 409: nothing could be cancelled.
    const { cancelled, too_late: late } = answer as { readonly cancelled?: unknown; readonly too_late?: unknown }
    this.answers.push({ at: Date.now(), cancelled: addresses(cancelled ?? []), tooLate: late === undefined ? to : addresses(late) })
  }

  /** Asks nodes in turn, until one gives an answer that is not to be repeated. */
  async #asked(path: string, init: Asked): Promise<unknown> {
    const deadline = Date.now() + PATIENCE
    for (;;) {
      const node: ClusterNode = this.#pick([...this.#cluster.nodes.values()])
      const headers = { ...init.headers, authorization: `Bearer ${this.#token}` }
      const answer = await fetch(`http://${node.settings['admin_listen']}/api/v1/messages${path}`, { ...init, headers }).catch(() => null)
      const body = await answer?.json().catch(() => null)
      if (answer !== null && body !== null && (answer.ok || answer.status === 409)) return body
      if (answer !== null && answer.status < 500) throw new Error(`${init.method} ${path}: ${answer.status} ${JSON.stringify(body)}`)
      if (Date.now() > deadline) throw new Error(`${init.method} ${path}: no answer for ${PATIENCE} ms`)
      await pause(20)
    }
  }
}

/** Runs at least so many races, with so many kills. Rejects when mail is left in the queue. */
export async function raceOnNodes({
  races: atLeast,
  kills,
  seed,
}: {
  readonly races: number
  readonly kills: number
  readonly seed: number
}) {
  const cluster = await NodeCluster.open({
    // Long where no daemon is killed, so that a busy machine removes none.
    node_lease: kills > 0 ? '2s' : '10s',
    smtpd_future_release_limit: '1d',
    minimal_backoff_time: '1s',
    maximal_backoff_time: '2s',
    default_destination_concurrency_limit: '5',
  })
  try {
    for (const far of cluster.far) far.delay = 20
    for (const name of NAMES) await cluster.start(name, { admin_listen: `127.0.0.1:${await portBelowEphemeral()}` })
    await cluster.shared(...NAMES)
    const races = new Races(cluster, (await cluster.says('token', 'add', 'app', '--role', 'sender')).trim(), seed)
    let [isKilling, isWatched] = [kills > 0, true]
    const removals = removalsWhile(cluster, () => isWatched)
    // Reported where it is awaited, unless the races fail before.
    removals.catch(() => undefined)
    const killing = races.kill(kills)
    void killing.finally(() => (isKilling = false)).catch(() => undefined)
    await races.run(() => !isKilling && races.races >= atLeast)
    await killing
    await until('empty', PATIENCE, async () => (await cluster.says('queue', 'list', '--count')).trim() === '0')
    isWatched = false
    return judged(cluster, races, await removals)
  } finally {
    await cluster.close()
  }
}

/** The removals of daemons from the queue while `isWatched`, each not later than it was. */
async function removalsWhile({ server }: NodeCluster, isWatched: () => boolean): Promise<readonly End[]> {
  const removals: End[] = []
  let present = new Map<string, string>()
  for (let at = Date.now(); isWatched(); await pause(100)) {
    const rows = await server.query('select id, name from node')
    const now = new Map(rows.map((row) => [String(row['id']), `${String(row['name'])}.example`]))
    for (const [id, client] of present) if (!now.has(id)) removals.push({ client, at })
    present = now
    at = Date.now()
  }
  return removals
}

function judged({ far }: NodeCluster, { answers, killed, races }: Races, removed: readonly End[]): NodeRaces {
  const ends = [...killed, ...removed]
  const begun = new Map<string, { readonly at: number; readonly client: string }[]>()
  for (const mail of far.flatMap((one) => one.begun))
    for (const address of mail.to) begun.set(address, [...(begun.get(address) ?? []), mail])
  const delivered = new Set(far.flatMap(({ deliveredTo }) => [...deliveredTo.keys()]))
  const cancelled = answers.flatMap(({ at, cancelled: all }) => all.map((address) => ({ at, address })))
  const tooLate = answers.flatMap((one) => one.tooLate)
  const isDoubtful = ({ at, address }: (typeof cancelled)[number]): boolean =>
    (begun.get(address) ?? []).some((mail) => ends.some((one) => one.client === mail.client && one.at >= mail.at && one.at <= at))
  const arrived = cancelled.filter(({ address }) => delivered.has(address))
  const names = (list: typeof cancelled) => list.map(({ address }) => address)
  return {
    races,
    kills: killed.length,
    cancelled: cancelled.length,
    tooLate: tooLate.length,
    deliveredAtRemoval: arrived.filter(isDoubtful).length,
    removed: removed.length,
    begunAfter: names(cancelled.filter(({ at, address }) => (begun.get(address) ?? []).some((mail) => mail.at > at))),
    both: names(arrived.filter((one) => !isDoubtful(one))),
    neither: tooLate.filter((address) => !delivered.has(address)),
  }
}
