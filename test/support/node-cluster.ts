/**
 * Several daemons on one queue in PostgreSQL, with remote servers that count deliveries and a client for each node. Each remote server
 * is a destination of its own, so that the mail is spread over the nodes.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LET_GO_PER_BEAT } from '../../src/store/membership/shard-balance.ts'
import { SHARDS } from '../../src/store/membership/shards.ts'
import { startLossyProxy, type LossyProxy } from './lossy-proxy.ts'
import { portBelowEphemeral } from './ports.ts'
import { startPostgres, type PostgresServer, type ServerOptions } from './postgres-server.ts'
import { RemoteLedger } from './remote-ledger.ts'
import { SmtpLoad } from './smtp-load.ts'
import { DaemonFolder, type Ended, type StartedProcess } from './started-daemon.ts'

/** A node as `deferd node list --json` prints it. */
export interface ListedNode {
  readonly node: number
  readonly name: string
  readonly state: 'active' | 'draining' | 'silent'
  readonly shards: number
  readonly leased: number
  readonly beat_age: number
  readonly settings_differ: boolean
}

export interface ClusterNode {
  readonly name: string
  readonly port: number
  readonly http: number
  readonly folder: DaemonFolder
  readonly process: StartedProcess
  readonly load: SmtpLoad
  /** Its way to the database. */
  readonly proxy: LossyProxy
  /** Parameters that the other nodes do not have. */
  readonly settings: Readonly<Record<string, string>>
}

/** Number of destinations, unless a test has another. */
const DESTINATIONS = 6
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Waits until a condition holds, and fails with `what` after `limit` ms. */
export async function until(what: string, limit: number, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + limit
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`after ${limit} ms: not ${what}`)
    await pause(50)
  }
}

const placeOf = (name: string, port: number, http: number): Readonly<Record<string, string>> => ({
  node_name: name,
  myhostname: `${name}.example`,
  smtpd_listen: `127.0.0.1:${port}`,
  http_listen: `127.0.0.1:${http}`,
})

export class NodeCluster {
  readonly server: PostgresServer
  readonly far: readonly RemoteLedger[]
  /** The server of the sender `app@us.example`, which receives the notices. */
  readonly home = new RemoteLedger()
  /** Names of the destinations of `far`, in the same order: `d0.example` is routed to the first. */
  readonly destinations: readonly string[]
  readonly nodes = new Map<string, ClusterNode>()
  /** bin/deferd.js of the processes that are started from now on; absent for that of this repository. */
  program: string | undefined
  readonly #settings: Readonly<Record<string, string>>
  readonly #folders: DaemonFolder[] = []
  /** The configuration file of the daemons. */
  config = ''
  /** Number of daemons so far. */
  #started = 0

  static async open(
    settings: Readonly<Record<string, string>> = {},
    server: ServerOptions = {},
    destinations = DESTINATIONS,
    tables = '',
  ): Promise<NodeCluster> {
    const far = Array.from({ length: destinations }, () => new RemoteLedger())
    const ports = await Promise.all(far.map((one) => one.listen()))
    const cluster = new NodeCluster(
      await startPostgres(server),
      settings,
      new Map(far.map((one, n) => [`smtp:[127.0.0.1]:${ports[n]}`, one])),
    )
    const folder = cluster.newFolder()
    cluster.config = join(folder.path, 'deferd.toml')
    const routes = cluster.destinations.map((destination, n) => `"d${n}.example" = "${destination}"`)
    routes.push(`"us.example" = "smtp:[127.0.0.1]:${await cluster.home.listen()}"`)
    writeFileSync(cluster.config, `[transport_maps]\n${routes.join('\n')}\n${tables}`)
    return cluster
  }

  private constructor(server: PostgresServer, settings: Readonly<Record<string, string>>, remotes: ReadonlyMap<string, RemoteLedger>) {
    this.server = server
    this.far = [...remotes.values()]
    this.destinations = [...remotes.keys()]
    this.#settings = { queue_database: server.url(), queue_database_durability: 'primary', relayhost: '', node_lease: '2s', ...settings }
  }

  newFolder(): DaemonFolder {
    const folder = new DaemonFolder()
    this.#folders.push(folder)
    return folder
  }

  /** Starts a daemon. Its client submits to recipients of all destinations in turn. */
  async start(name: string, settings: Readonly<Record<string, string>> = {}): Promise<ClusterNode> {
    const [port, http] = [await portBelowEphemeral(), await portBelowEphemeral()]
    const folder = this.newFolder()
    const proxy = await startLossyProxy(this.server.port)
    const load = new SmtpLoad(1 + 1_000_000 * this.#started++)
    const process = this.run(['start'], { ...placeOf(name, port, http), ...this.#through(proxy), ...settings }, folder)
    await process.prints('queue directory')
    const node = { name, port, http, folder, process, load, proxy, settings }
    node.load.port = port
    this.nodes.set(name, node)
    return node
  }

  /** Starts the daemon of a node again, on the ports and with the client and the parameters that it had. */
  async restart(node: ClusterNode): Promise<void> {
    const { name, port, http, proxy, settings, folder } = node
    const process = this.run(['start'], { ...placeOf(name, port, http), ...this.#through(proxy), ...settings }, folder)
    await process.prints('queue directory')
    this.nodes.set(node.name, { ...node, process })
  }

  #through({ port }: LossyProxy): Readonly<Record<string, string>> {
    return { queue_database: `postgresql://postgres@127.0.0.1:${port}/postgres` }
  }

  startAll(...names: readonly string[]): Promise<readonly ClusterNode[]> {
    return Promise.all(names.map((name) => this.start(name)))
  }

  /** Runs a command on a machine of its own, which has only the credentials of the database. */
  run(command: readonly string[], settings: Readonly<Record<string, string>> = {}, folder = this.newFolder()): StartedProcess {
    const config = command[0] === 'start' || command[0] === 'sendmail' ? ['--config', this.config] : []
    const program = this.program === undefined ? {} : { program: this.program }
    return folder.run([...command, ...config], { node_name: 'machine', ...this.#settings, ...settings }, program)
  }

  /** Output of a command that must succeed. */
  async says(...command: readonly string[]): Promise<string> {
    const { code, out, err } = await this.run(command).ended
    if (code !== 0) throw new Error(`deferd ${command.join(' ')} ended with ${code}: ${err}`)
    return out
  }

  async list(): Promise<readonly ListedNode[]> {
    const lines = (await this.says('node', 'list', '--json')).split('\n').filter((line) => line !== '')
    return lines.map((line) => JSON.parse(line) as ListedNode)
  }

  /** Resolves when these nodes have all shards among them, but for those that one of them is letting go for another. */
  async shared(...names: readonly string[]): Promise<void> {
    await until(`shared by ${names.join(', ')}`, 90_000, async () => {
      const shards = await this.#shards()
      const sum = [...shards.values()].reduce((all, one) => all + one, 0)
      const passing = names.length > 1 ? LET_GO_PER_BEAT : 0
      return sum >= SHARDS - passing && names.every((name) => (shards.get(name) ?? 0) > 0) && shards.size === names.length
    })
  }

  /**
   * Resolves when each of these nodes has its fair share, after which no shard changes its node while all of them live. A node that
   * joined after another had taken all shards gets LET_GO_PER_BEAT of them per beat.
   */
  async balanced(...names: readonly string[]): Promise<void> {
    await until(`balanced between ${names.join(', ')}`, 180_000, async () => {
      const shards = await this.#shards()
      const counts = names.map((name) => shards.get(name) ?? 0)
      return counts.reduce((all, one) => all + one, 0) === SHARDS && Math.max(...counts) <= Math.ceil(SHARDS / names.length)
    })
  }

  /** Number of shards by the name of their node. */
  async #shards(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.server.query(
      `select n.name, count(*)::int as shards from shard s join node n on n.id = s.owner group by n.name order by n.name`,
    )
    return new Map(rows.map((row) => [String(row['name']), Number(row['shards'])]))
  }

  /** Deliveries of all destinations, by the number of the message. */
  delivered(): ReadonlyMap<number, number> {
    const all = new Map<number, number>()
    for (const { delivered } of this.far) for (const [number, times] of delivered) all.set(number, (all.get(number) ?? 0) + times)
    return all
  }

  /** Ends a daemon in order, and returns the time that this took. */
  async stop({ process, name, proxy }: ClusterNode): Promise<Ended & { readonly took: number }> {
    const begun = performance.now()
    process.child.kill('SIGTERM')
    const ended = await process.ended
    await proxy.close()
    this.nodes.delete(name)
    return { ...ended, took: performance.now() - begun }
  }

  async close(): Promise<void> {
    for (const { process } of this.nodes.values()) process.child.kill('SIGCONT')
    await Promise.all([...this.nodes.values()].map(({ load }) => load.close()))
    await Promise.all(this.#folders.map((folder) => folder.close()))
    await Promise.all([...this.far, this.home].map((remote) => remote.close()))
    await Promise.all([...this.nodes.values()].map(({ proxy }) => proxy.close()))
    await this.server.remove()
  }
}
