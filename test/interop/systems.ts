/** The two relays that are compared: a daemon of deferd in this process, and a private Postfix. Each relays to a sink of its own. */
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { startPostfix } from '../../scripts/bench/postfix.ts'
import { greeted } from '../../scripts/bench/child.ts'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon } from '../../src/daemon/daemon.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { systemRandom } from '../../src/system/system-random.ts'
import { Events } from '../../src/telemetry/events.ts'
import { postfixLines } from '../../src/telemetry/log-records.ts'
import { RemoteNetwork } from '../../src/testkit/remote/remote-network.ts'
import type { ReceivedMail } from '../../src/testkit/remote/remote-events.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { Operator } from '../support/operator.ts'
import { portBelowEphemeral } from '../support/ports.ts'

export interface System {
  readonly name: 'deferd' | 'Postfix'
  readonly port: number
  /** Mail that reached the sink. */
  readonly received: readonly ReceivedMail[]
  /** Lines of the log, as `program: text`. */
  log(): readonly string[]
  /** Calls sendmail and resolves with its exit code. */
  sendmail(args: readonly string[], input: string): Promise<number>
  stop(): Promise<void>
}

/** Settings with the same name and value in both systems. */
const COMMON = {
  myhostname: 'relay.example',
  myorigin: 'origin.example',
  mail_name: 'Postfix',
  relay_domains: 'open.test',
  mynetworks: '127.0.0.1/32',
  smtpd_error_sleep_time: '0',
  smtpd_forbid_unauth_pipelining: 'yes',
  smtpd_forbid_bare_newline: 'normalize',
  message_size_limit: '200000',
}

/** Properties of a pair of systems beside those of all pairs. */
export interface PairOptions {
  /** Settings with the same name and value in both systems. */
  readonly settings?: Readonly<Record<string, string>>
  /** Settings of deferd that replace those of both. */
  readonly ownSettings?: Readonly<Record<string, string>>
  /** Tables of deferd's configuration file. */
  readonly ownTables?: Readonly<Record<string, unknown>>
  /** Settings of Postfix that deferd does not have, or that replace those of both. */
  readonly referenceSettings?: Readonly<Record<string, string>>
  /** Entries of transport_maps. */
  readonly transportMaps?: Readonly<Record<string, string>>
  /** True for local deliveries of Postfix, which expand alias_maps. Mail that remains local goes to the sink. */
  readonly withLocalDelivery?: boolean
  /** True for sinks that start TLS with the connection. */
  readonly secureSinks?: boolean
  /** Text that each client has to send before the greeting. */
  readonly opening?: string
}

/** Settings that Postfix needs to behave by its own defaults in a relay without local mail. */
const POSTFIX_ONLY = {
  smtpd_relay_restrictions: 'permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination',
  smtpd_forbid_bare_newline_exclusions: '',
  enable_long_queue_ids: 'yes',
  mydomain: 'domain.example',
  // The domains whose addresses deferd looks up by their local part alone. Their mail is relayed like all other.
  mydestination: 'relay.example, localhost',
}

/** A port of a sink that keeps mail. */
export class SinkPort {
  readonly received: ReceivedMail[] = []
  port = 0
  readonly #remote: RemoteNetwork
  readonly #server: Server

  constructor({ secureSinks = false }: PairOptions) {
    this.#remote = new RemoteNetwork({
      clock: systemClock,
      random: systemRandom,
      addresses: true,
      keep: (mail) => this.received.push(mail),
    })
    const accept = (socket: Socket) => void this.#remote.accept(socket, 'sink')
    this.#server = secureSinks ? createTlsServer({ cert: CERTIFICATE, key: KEY }, accept) : createServer(accept)
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.port = (this.#server.address() as AddressInfo).port
    return this
  }

  close(): void {
    this.#remote.close()
    this.#server.close()
  }
}

/** Starts a daemon with a queue below `folder`. `settings` may name another relayhost than its sink. */
export async function startDeferd(folder: string, options: PairOptions): Promise<System> {
  const sink = await new SinkPort(options).open()
  const directory = join(folder, 'deferd')
  const port = await portBelowEphemeral()
  const own = { relayhost: `[127.0.0.1]:${sink.port}`, queue_directory: directory, smtpd_listen: `127.0.0.1:${port}` }
  const settings = { ...COMMON, ...own, ...options.settings, ...options.ownSettings }
  const overrides = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  const loaded = configFrom({ transport_maps: options.transportMaps ?? {}, ...options.ownTables }, 'relay.example', { overrides })
  const events = new Events(() => systemClock.now())
  const lines: string[] = []
  // The Postfix of Debian 12 has no tls= in its lines (smtp_log_tls_feature_status, Postfix 3.11).
  const written = { tlsStatus: false }
  events.listen((event) => lines.push(...postfixLines(event, written).map(({ program, text }) => `${program}: ${text}`)))
  const daemon = await startDaemon({ loaded, events })
  const operator = new Operator()
  return {
    name: 'deferd',
    port,
    received: sink.received,
    log: () => lines,
    sendmail: async (args, input) => {
      const given = overrides.flatMap((override) => ['-o', override])
      return (await operator.run(['sendmail', ...given, ...args], { stdin: Buffer.from(input, 'latin1'), env: { NAME: 'root' } })).code
    },
    stop: async () => {
      await daemon.stop()
      operator.leave()
      sink.close()
    },
  }
}

/** Settings by which mail to local domains goes to the sink, after aliases when there is local delivery. */
const localMail = (sink: string, { withLocalDelivery = false }: PairOptions): Readonly<Record<string, string>> =>
  withLocalDelivery
    ? { local_transport: 'local', mailbox_transport: sink, mydestination: 'origin.example, relay.example, localhost' }
    : { local_transport: sink }

async function startReference(folder: string, options: PairOptions): Promise<System> {
  const sink = await new SinkPort(options).open()
  const directory = join(folder, 'postfix')
  mkdirSync(directory)
  const port = await portBelowEphemeral()
  const entries = Object.entries(options.transportMaps ?? {}).map(([key, value]) => `{${key} = ${value}}`)
  const transportMaps = entries.length === 0 ? {} : { transport_maps: `inline:{${entries.join(', ')}}` }
  const instance = await startPostfix(
    directory,
    { listen: port, nextHop: sink.port },
    {
      ...COMMON,
      ...POSTFIX_ONLY,
      ...localMail(`smtp:[127.0.0.1]:${sink.port}`, options),
      ...transportMaps,
      ...options.settings,
      ...options.referenceSettings,
    },
  )
  await greeted(instance, port, new AbortController().signal, options.opening)
  return {
    name: 'Postfix',
    port,
    received: sink.received,
    log: () => readLog(join(directory, 'log')),
    sendmail: (args, input) =>
      new Promise((resolve) => {
        const child = execFile('/usr/sbin/sendmail', ['-C', join(directory, 'etc'), ...args], { env: {} }, () =>
          resolve(child.exitCode ?? -1),
        )
        child.stdin?.on('error', () => undefined)
        child.stdin?.end(Buffer.from(input, 'latin1'))
      }),
    stop: async () => {
      await instance.stop()
      sink.close()
    },
  }
}

const readLog = (file: string): readonly string[] =>
  readFileSync(file, 'latin1')
    .split('\n')
    .flatMap((line) => /postfix\/([\w-]+)\[\d+\]: (.*)$/.exec(line)?.slice(1, 3).join(': ') ?? [])

export interface Pair {
  readonly deferd: System
  readonly postfix: System
  stop(): Promise<void>
}

export async function startPair(options: PairOptions = {}): Promise<Pair> {
  // Not in the folder of the tests, which Postfix's own user may not enter.
  const folder = mkdtempSync('/tmp/deferd-interop-')
  chmodSync(folder, 0o755)
  const [deferd, postfix] = await Promise.all([startDeferd(folder, options), startReference(folder, options)])
  return {
    deferd,
    postfix,
    stop: async () => {
      await Promise.all([deferd.stop(), postfix.stop()])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
