/** The SMTP server: listens through the Net port and creates a Connection for every client. */
import type { Config } from '../config/options.ts'
import type { Endpoint, Listener, Net } from '../system/net.ts'
import type { Clock, Duration } from '../system/clock.ts'
import type { Random } from '../system/random.ts'
import type { DeadEnds } from '../delivery/routing/dead-ends.ts'
import type { MessageTaker } from '../queue/intake/acceptor.ts'
import type { Intake } from '../queue/intake/intake.ts'
import type { Events } from '../telemetry/events.ts'
import type { AccessEntries } from '../access/access-entries.ts'
import { AccessRules } from '../access/access-rules.ts'
import type { AccessTables } from '../access/access-tables.ts'
import { PolicyClient } from '../access/policy-client.ts'
import { ClientLimits } from './client-limits.ts'
import type { ServerContext } from './connection.ts'
import { listenAt, openPort } from '../config/values/endpoints.ts'
import type { ListenerBlock } from '../config/values/values.ts'
import { HourlyLimits } from './hourly-limits.ts'
import { OpenConnections } from './open-connections.ts'
import { blocksOf, readCertificate } from '../config/smtpd-listeners.ts'
import type { FlushDomain } from './session.ts'
import { peerName } from './peer-name.ts'
import { SmtpServerAdapter, type SmtpServerAdapterDeps } from './smtp-server-adapter.ts'
import { RelayPolicy } from './relay-policy.ts'
import { Users } from '../access/users.ts'

export interface SmtpdDeps {
  readonly config: Config
  readonly net: Net
  readonly clock: Clock
  readonly random: Random
  readonly acceptor: MessageTaker
  readonly events: Events
  readonly intake: Pick<Intake, 'refusal'>
  readonly flushDomain: FlushDomain
  /** Opened access tables. */
  readonly access: AccessTables
  readonly deadEnds: Pick<DeadEnds, 'refusalOf' | 'isAlias'>
  /** Access entries of commands; none when absent. */
  readonly accessEntries?: Pick<AccessEntries, 'isEmpty' | 'find'> | undefined
}

export interface Smtpd {
  /** Bound addresses, in the order of smtpd_listen and [[smtpd]]. */
  readonly listeners: readonly Endpoint[]
  /**
   * Applies new settings to later connections: opens added listeners, closes removed ones, and reads the certificate again. Rejects
   * like startSmtpd, without effect.
   */
  reload(changed: Pick<SmtpdDeps, 'config' | 'acceptor' | 'access' | 'deadEnds'>): Promise<void>
  /** Closes listeners and idle connections. A message that is being received has `grace` ms to be completed. */
  close(grace: Duration): Promise<void>
}

/** Opens the ports of the SMTP server. Rejects with CannotListen or CertificateUnusable; no port is then left open. */
export async function startSmtpd(deps: SmtpdDeps): Promise<Smtpd> {
  const { net, clock } = deps
  let { config } = deps
  const connections = new OpenConnections()
  const policies = new PolicyClient({ net, clock, timeout: () => config.smtpd_policy_service_timeout })
  const lasting = { connections, policies, hourly: new HourlyLimits(clock) }
  let context = contextOf(deps, lasting)
  const ports = new Ports(net, { connections, context: () => context })
  await ports.apply(config)
  return {
    get listeners() {
      return ports.listeners
    },
    reload: async (changed) => {
      await ports.apply(changed.config)
      ;({ config } = changed)
      context = contextOf({ ...deps, ...changed }, lasting)
    },
    close: async (grace) => {
      await ports.close()
      await connections.drain(grace, clock)
      policies.close()
    },
  }
}

/** An open port with the server of its connections, which a reload replaces. */
interface Port {
  readonly listener: Listener
  server: SmtpServerAdapter
}

/** The open ports, by address in the configuration. */
class Ports {
  readonly #net: Net
  readonly #shared: Pick<SmtpServerAdapterDeps, 'connections' | 'context'>
  #open: ReadonlyMap<string, Port> = new Map()

  constructor(net: Net, shared: Pick<SmtpServerAdapterDeps, 'connections' | 'context'>) {
    this.#net = net
    this.#shared = shared
  }

  get listeners(): readonly Endpoint[] {
    return [...this.#open.values()].map(({ listener }) => listener)
  }

  /** Opens, keeps and closes ports as configured. Rejects without effect when a port cannot be opened. */
  async apply(config: Config): Promise<void> {
    const certificate = readCertificate(config)
    const users = config.smtpd_sasl_users_file === '' ? null : new Users(config.smtpd_sasl_users_file)
    const serverFor = (rules: ListenerBlock) => new SmtpServerAdapter({ ...this.#shared, rules, certificate, users })
    const wanted = keyed(blocksOf(config))
    const opened = new Map<string, Port>()
    try {
      for (const [key, block] of wanted) if (!this.#open.has(key)) opened.set(key, await this.#openPort(block, config, serverFor(block)))
    } catch (error) {
      await closeAll(opened.values())
      throw error
    }
    const former = this.#open
    const open = new Map<string, Port>()
    for (const [key, block] of wanted) {
      const kept = former.get(key)
      if (kept !== undefined) kept.server = serverFor(block)
      const port = kept ?? opened.get(key)
      if (port !== undefined) open.set(key, port)
    }
    this.#open = open
    await closeAll([...former].filter(([key]) => !wanted.has(key)).map(([, port]) => port))
  }

  async close(): Promise<void> {
    await closeAll(this.#open.values())
  }

  async #openPort(block: ListenerBlock, config: Config, server: SmtpServerAdapter): Promise<Port> {
    const at = listenAt(block.address, 'smtpd_listen', config.inet_protocols)
    const option = config.smtpd.includes(block) ? '[[smtpd]] address' : 'smtpd_listen'
    const current = { server }
    const listener = await openPort(option, at, () => this.#net.listen(at, (socket) => current.server.connect(socket)))
    return Object.assign(current, { listener })
  }
}

async function closeAll(ports: Iterable<Port>): Promise<void> {
  await Promise.all([...ports].map(({ listener }) => listener.close()))
}

/** Listeners by address. A repeated address, such as two listeners on port 0, is numbered. */
function keyed(blocks: readonly ListenerBlock[]): ReadonlyMap<string, ListenerBlock> {
  const seen = new Map<string, number>()
  return new Map(
    blocks.map((block) => {
      const nth = (seen.get(block.address) ?? 0) + 1
      seen.set(block.address, nth)
      return [`${block.address} ${nth}`, block]
    }),
  )
}

const NO_ENTRIES = { isEmpty: true, find: () => undefined } as const

/** Parts that a reload keeps. */
interface LastingParts {
  readonly connections: OpenConnections
  readonly policies: PolicyClient
  readonly hourly: HourlyLimits
}

function contextOf({ config, net, clock, acceptor, ...deps }: SmtpdDeps, { connections, policies, hourly }: LastingParts): ServerContext {
  const { events, intake, flushDomain, deadEnds, access: tables, accessEntries: entries = NO_ENTRIES } = deps
  const warn = (text: string): void => events.emit({ kind: 'note', level: 'warning', text })
  const startedAt = clock.now().toString(36)
  let transactions = 0
  return {
    settings: config,
    clock,
    acceptor,
    sessions: {
      settings: config,
      access: new RelayPolicy(config),
      deadEnds,
      events,
      limits: new ClientLimits(config, clock),
      refusal: (size) => intake.refusal(size),
      flushDomain,
      restrictions: new AccessRules({ config, tables, entries, net, policies, warn, isAlias: (address) => deadEnds.isAlias(address) }),
      hourly,
      nextInstance: () => `${startedAt}.${(++transactions).toString(36)}`,
    },
    nameOf: config.smtpd_peername_lookup ? (address) => peerName(address, net, clock) : undefined,
    hasRoom: () => connections.haveRoom(config.smtpd_process_limit, clock.monotonic()),
    ended: (connection) => connections.delete(connection),
  }
}
