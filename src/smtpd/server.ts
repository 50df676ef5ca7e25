/** The SMTP server: listens through the Net port and creates a Connection for every client. */
import type { PriorityChoice } from './dialogue/priority-request.ts'
import type { Config, Listener, SharedSettings } from '../config/options.ts'
import type { Endpoint, Listener as OpenPort, Net } from '../system/net.ts'
import type { Clock, Duration } from '../system/clock.ts'
import type { Random } from '../system/random.ts'
import type { DeadEnds } from '../delivery/routing/dead-ends.ts'
import type { MessageTaker } from '../queue/intake/acceptor.ts'
import type { Intake } from '../queue/intake/intake.ts'
import type { Events } from '../telemetry/events.ts'
import type { AccessEntries } from '../access/access-entries.ts'
import { AccessRules } from '../access/access-rules.ts'
import type { AccessTables, ListenerAccess } from '../access/access-tables.ts'
import { PolicyClient } from '../access/policy-client.ts'
import { ClientCounts, ClientLimits } from './dialogue/client-limits.ts'
import type { ServerContext } from './connection.ts'
import { listenAt, openPort } from '../config/values/endpoints.ts'
import { OpenConnections, type OpenSession } from './open-connections.ts'
import { listenersOf, readCertificate, type Certificate } from '../config/smtpd-listeners.ts'
import type { FlushDomain } from './dialogue/session-context.ts'
import type { SessionRecordings } from '../sessions/session-recordings.ts'
import { peerName } from './dialogue/peer-name.ts'
import type { Suppressions } from '../suppression/suppressions.ts'
import { SmtpServerAdapter } from './smtp-server-adapter.ts'
import { RelayPolicy } from './dialogue/relay-policy.ts'
import { Users } from '../access/users.ts'

interface SmtpdDeps {
  readonly config: Config
  readonly net: Net
  readonly clock: Clock
  readonly random: Random
  readonly acceptor: MessageTaker
  readonly events: Events
  readonly intake: Pick<Intake, 'refusal' | 'recipientRefusal'>
  /** Decides about the priorities of mail; none when absent. */
  readonly classes?: (() => PriorityChoice | null) | undefined
  readonly flushDomain: FlushDomain
  /** Opened access tables. */
  readonly access: AccessTables
  readonly deadEnds: Pick<DeadEnds, 'refusalOf' | 'isAlias'>
  /** Access entries of commands; none when absent. */
  readonly accessEntries?: Pick<AccessEntries, 'isEmpty' | 'find'> | undefined
  /** The suppression list; none when absent. */
  readonly suppressions?: Pick<Suppressions, 'find' | 'report'> | undefined
  /** Records sessions; absent where none are. */
  readonly recordings?: Pick<SessionRecordings, 'begin' | 'wants'> | undefined
  /** Users and certificate in place of the files of the configuration; these are read when absent. */
  readonly serverSecrets?: ServerSecrets | undefined
}

export interface ServerSecrets {
  readonly users: Pick<Users, 'accepts'>
  readonly certificate: Certificate
}

export interface Smtpd {
  /** Bound addresses, in the order of smtpd_listen and [[smtpd]]. */
  readonly listeners: readonly Endpoint[]
  readonly sessions: readonly OpenSession[]
  /**
   * Applies new settings to later connections: opens added listeners, closes removed ones, and reads the certificate again. Rejects
   * like startSmtpd, without effect.
   */
  reload(changed: Pick<SmtpdDeps, 'config' | 'acceptor' | 'access' | 'deadEnds'>): Promise<void>
  /** Closes listeners and idle connections. A message that is being received has `grace` ms to be completed. */
  close(grace: Duration): Promise<void>
}

const sharedBy = (config: Config): SharedSettings => config

/** Opens the ports of the SMTP server. Rejects with CannotListen or CertificateUnusable; no port is then left open. */
export async function startSmtpd(deps: SmtpdDeps): Promise<Smtpd> {
  const { net, clock, serverSecrets } = deps
  let { config } = deps
  const connections = new OpenConnections()
  const policies = new PolicyClient({ net, clock, timeout: () => sharedBy(config).smtpd_policy_service_timeout })
  const lasting = { connections, policies, clients: new ClientCounts(clock) }
  const ports = new Ports(net, { connections, serverSecrets })
  await ports.apply(config, contextsOf(deps, lasting))
  return {
    get listeners() {
      return ports.listeners
    },
    get sessions() {
      return connections.sessions
    },
    reload: async (changed) => {
      await ports.apply(changed.config, contextsOf({ ...deps, ...changed }, lasting))
      ;({ config } = changed)
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
  readonly listener: OpenPort
  server: SmtpServerAdapter
}

interface PortParts extends Pick<SmtpdDeps, 'serverSecrets'> {
  readonly connections: OpenConnections
}

/** The open ports, by address in the configuration. */
class Ports {
  readonly #net: Net
  readonly #connections: OpenConnections
  readonly #secrets: ServerSecrets | undefined
  #open: ReadonlyMap<string, Port> = new Map()

  constructor(net: Net, { connections, serverSecrets }: PortParts) {
    this.#net = net
    this.#connections = connections
    this.#secrets = serverSecrets
  }

  get listeners(): readonly Endpoint[] {
    return [...this.#open.values()].map(({ listener }) => listener)
  }

  /** Opens, keeps and closes ports as configured. Rejects without effect when a port cannot be opened. */
  async apply(config: Config, contextOf: (listener: Listener) => ServerContext): Promise<void> {
    const { smtpd_sasl_users_file: file } = sharedBy(config)
    const users = this.#secrets?.users ?? (file === '' ? null : new Users(file))
    const serverOf = (listener: Listener) =>
      new SmtpServerAdapter({
        connections: this.#connections,
        context: contextOf(listener),
        rules: listener,
        certificate: this.#secrets?.certificate ?? readCertificate(config, listener),
        users,
      })
    const wanted = new Map([...keyed(listenersOf(config))].map(([key, listener]) => [key, { listener, server: serverOf(listener) }]))
    const opened = new Map<string, Port>()
    try {
      for (const [key, { listener, server }] of wanted) {
        if (!this.#open.has(key)) opened.set(key, await this.#openPort(listener, config, server))
      }
    } catch (error) {
      await closeAll(opened.values())
      throw error
    }
    const former = this.#open
    const open = new Map<string, Port>()
    for (const [key, { server }] of wanted) {
      const kept = former.get(key)
      if (kept !== undefined) kept.server = server
      const port = kept ?? opened.get(key)
      if (port !== undefined) open.set(key, port)
    }
    this.#open = open
    await closeAll([...former].filter(([key]) => !wanted.has(key)).map(([, port]) => port))
  }

  async close(): Promise<void> {
    await closeAll(this.#open.values())
  }

  async #openPort(wanted: Listener, config: Config, server: SmtpServerAdapter): Promise<Port> {
    const at = listenAt(wanted.address, 'smtpd_listen', config.inet_protocols)
    const option = config.smtpd.includes(wanted) ? '[[smtpd]] address' : 'smtpd_listen'
    const current = { server }
    const listener = await openPort(option, at, () => this.#net.listen(at, (socket) => current.server.connect(socket)))
    return Object.assign(current, { listener })
  }
}

async function closeAll(ports: Iterable<Port>): Promise<void> {
  await Promise.all([...ports].map(({ listener }) => listener.close()))
}

/** Listeners by address. A repeated address, such as two listeners on port 0, is numbered. */
function keyed(listeners: readonly Listener[]): ReadonlyMap<string, Listener> {
  const seen = new Map<string, number>()
  return new Map(
    listeners.map((listener) => {
      const nth = (seen.get(listener.address) ?? 0) + 1
      seen.set(listener.address, nth)
      return [`${listener.address} ${nth}`, listener]
    }),
  )
}

const NO_ENTRIES = { isEmpty: true, find: () => undefined } as const

/** Parts that a reload keeps. */
interface LastingParts {
  readonly connections: OpenConnections
  readonly policies: PolicyClient
  readonly clients: ClientCounts
}

/** Returns the function that makes the context of a listener: the parts of all listeners, with the parameters that differ at this one. */
function contextsOf(
  { access, ...deps }: SmtpdDeps,
  { connections, policies, clients }: LastingParts,
): (listener: Listener) => ServerContext {
  const {
    config: relay,
    net,
    clock,
    acceptor,
    events,
    intake,
    flushDomain,
    deadEnds,
    accessEntries: entries = NO_ENTRIES,
    recordings,
    suppressions,
    classes = () => null,
  } = deps
  const warn = (text: string): void => events.emit({ kind: 'note', level: 'warning', text })
  const limits = new ClientLimits(relay, clients)
  const startedAt = clock.now().toString(36)
  let transactions = 0
  const contextOf = (config: Config, tables: ListenerAccess): ServerContext => ({
    settings: config,
    clock,
    acceptor,
    sessions: {
      settings: config,
      access: new RelayPolicy(config),
      deadEnds,
      suppressions,
      events,
      limits,
      refusal: (...mail) => intake.refusal(...mail),
      recipientRefusal: (...mail) => intake.recipientRefusal(...mail),
      classes,
      flushDomain,
      clock,
      restrictions: new AccessRules({ config, tables, entries, net, policies, warn, isAlias: (address) => deadEnds.isAlias(address) }),
      nextInstance: () => `${startedAt}.${(++transactions).toString(36)}`,
    },
    recordings,
    nameOf: config.smtpd_peername_lookup ? (address) => peerName(address, net, clock) : undefined,
    hasRoom: () => connections.haveRoom(config.smtpd_process_limit, clock.monotonic()),
    ended: (connection) => connections.delete(connection),
  })
  const shared = contextOf(relay, access)
  return (listener) => {
    const { settings } = listener
    if (Object.keys(settings).length === 0) return shared
    const own = access.tables[relay.smtpd.indexOf(listener)]
    // The tables of the relay would allow what those of the listener refuse.
    if (own === undefined) throw new Error(`the access tables of the listener ${listener.address} are missing`)
    return contextOf({ ...relay, ...settings }, own)
  }
}
