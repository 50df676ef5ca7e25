/** An authorization server and a mail server that takes its tokens, on ports of this machine, with a configuration that uses them. */
import { FileAccess } from '../../src/cli/queue-client/file-access.ts'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import type { Authority, AuthorityOptions } from '../../src/testkit/index.ts'
import { openDirectClient } from '../../src/cli/queue-client/direct-client.ts'
import { openDaemonClient } from '../../src/cli/queue-client/api-client.ts'
import { loadConfig } from '../../src/config/load.ts'
import { startDaemon, type Daemon } from '../../src/daemon/daemon.ts'
import type { Listener } from '../../src/system/net.ts'
import { seededRandom } from '../../src/system/random.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { systemNet } from '../../src/system/system-net.ts'
import { Authority as SimulatedAuthority } from '../../src/testkit/scripted/test-authority.ts'
import { makeCertificate } from '../../src/testkit/remote/certificate-maker.ts'
import { RemoteNetwork } from '../../src/testkit/remote/remote-network.ts'
import { readScript } from '../../src/testkit/remote/script.ts'
import type { AttemptRecord } from '../../src/store/recorded-outcomes.ts'
import { Events } from '../../src/telemetry/events.ts'
import { Operator, type Ran, type Terminal } from './operator.ts'

export const SECRET = 'the-secret-of-the-application'
export const USER = 'app@contoso.example'
const HOST = 'hop'

export interface SiteOptions {
  readonly authority?: Partial<AuthorityOptions>
  /** Script of the servers. */
  readonly script?: string
  /** Members of the table `[oauth.m365]` beside the addresses; those of client credentials when absent. */
  readonly table?: readonly string[]
  readonly user?: string
}

export class OauthSite {
  readonly operator = new Operator()
  /** Everything that the commands have printed, and the events of the relay. */
  printed = ''
  #relay: Daemon | undefined
  readonly #listeners: Listener[]
  readonly #remote: RemoteNetwork
  readonly authority: Authority
  readonly hop: string

  static async open({ authority: options = {}, script = '', table, user = USER }: SiteOptions = {}): Promise<OauthSite> {
    const random = seededRandom(7)
    const remote = new RemoteNetwork({ clock: systemClock, random, script: script === '' ? undefined : readScript(script, 'site.toml') })
    const issuer = makeCertificate({ seed: 'authority', subject: 'test CA', isAuthority: true })
    const identity = makeCertificate({ seed: 'host', subject: 'host', names: ['127.0.0.1'], issuer })
    let authority: SimulatedAuthority | undefined
    const at = { address: '127.0.0.1', port: 0 }
    const web = await systemNet.listen(at, (socket) => authority !== undefined && remote.acceptWeb(socket, authority))
    const mail = await systemNet.listen(at, (socket) => void remote.accept(socket, HOST))
    authority = new SimulatedAuthority(
      { host: 'localhost', clients: { app: { secret: SECRET }, public: {} }, ...options },
      {
        clock: systemClock,
        startedAt: systemClock.now(),
        beganAt: systemClock.monotonic(),
        seed: Buffer.from('seed'),
        origin: `https://127.0.0.1:${web.port}`,
        identityOf: () => identity,
        rules: script === '' ? [] : readScript(script, 'site.toml').authority,
        report: () => undefined,
        protect: (host, own, guard) => remote.protect(host, own, guard),
        run: async (call) => ({ value: call() }),
      },
    )
    authority.protects(HOST)
    const site = new OauthSite(remote, [web, mail], authority, `[127.0.0.1]:${mail.port}`)
    site.write('ca.pem', issuer.cert)
    site.write('secret', `${SECRET}\n`)
    site.write('passwords', `${site.hop} ${user}:\n`)
    site.configure(table)
    return site
  }

  private constructor(remote: RemoteNetwork, listeners: Listener[], authority: SimulatedAuthority, hop: string) {
    this.#remote = remote
    this.#listeners = listeners
    this.authority = authority
    this.hop = hop
  }

  path(name: string): string {
    return join(this.operator.directory, 'files', name)
  }

  write(name: string, text: string): void {
    mkdirSync(this.path(''), { recursive: true })
    writeFileSync(this.path(name), text, { mode: 0o600 })
  }

  read(name: string): string {
    return readFileSync(this.path(name), 'utf8')
  }

  /** Changes the rights of the mailboxes. */
  protects(options: Parameters<Authority['protects']>[1]): void {
    this.authority.protects(HOST, options)
  }

  /** Writes the configuration. */
  configure(table: readonly string[] = applicationTable(this), head: readonly string[] = []): void {
    const text = [
      `relayhost = "${this.hop}"`,
      'smtp_tls_security_level = "encrypt"',
      `smtp_sasl_password_maps = "${this.path('passwords')}"`,
      'smtp_sasl_oauth = "m365"',
      ...head,
      '[oauth.m365]',
      `token_url = "${this.authority.tokenUrl}"`,
      `ca_file = "${this.path('ca.pem')}"`,
      ...table,
    ]
    this.write('deferd.toml', `${text.join('\n')}\n`)
  }

  async run(argv: readonly string[], terminal: Terminal = {}): Promise<Ran> {
    const ran = await this.operator.run([...argv, '--config', this.path('deferd.toml')], {
      clock: systemClock,
      access: {
        openReader: (config) => new FileAccess(config, systemClock).openReader(),
        openQueueClient: async (config) => (await openDaemonClient(config.queue_directory)) ?? openDirectClient(config, systemClock),
      },
      ...terminal,
    })
    this.printed += ran.out + ran.err
    return ran
  }

  /** Starts a relay with the configuration. Returns a function that sends mail through it, and resolves with the outcome of its first attempt. */
  async startRelay(): Promise<() => Promise<AttemptRecord['outcome']>> {
    const env = { DEFERD_QUEUE_DIRECTORY: this.operator.directory, DEFERD_MYHOSTNAME: 'relay.example', DEFERD_SMTPD_LISTEN: '127.0.0.1:0' }
    const sources = { file: this.path('deferd.toml'), overrides: [], calledAs: 'deferd', env, uid: 0 }
    const events = new Events(() => Date.now())
    let attempted = Promise.withResolvers<AttemptRecord['outcome']>()
    events.listen((event) => {
      this.printed += JSON.stringify(event, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
      if (event.kind === 'attempted') for (const { outcome } of event.attempts) attempted.resolve(outcome)
    })
    const relay = (this.#relay = await startDaemon({
      loaded: loadConfig({ ...sources, defaultFiles: this.operator.defaultFiles }),
      events,
    }))
    const [listener] = relay.listeners
    return async () => {
      attempted = Promise.withResolvers()
      const transport = createTransport({ host: '127.0.0.1', port: listener?.port ?? 0, ignoreTLS: true })
      await transport.sendMail({ envelope: { from: USER, to: 'ann@far.example' }, raw: 'Subject: hi\r\n\r\nhi\r\n' })
      return attempted.promise
    }
  }

  /** The object of a command that prints one. */
  async json(...argv: readonly string[]): Promise<Record<string, unknown>> {
    return JSON.parse((await this.run([...argv, '--json'])).out) as Record<string, unknown>
  }

  /** Secrets of all requests that are in what the commands have printed. */
  leaked(): readonly string[] {
    return [SECRET, ...this.authority.secrets()].filter((secret) => this.printed.includes(secret))
  }

  async close(): Promise<void> {
    await this.#relay?.stop()
    const closed = Promise.all(this.#listeners.map((listener) => listener.close()))
    this.#remote.close()
    await closed
    this.operator.leave()
  }
}

const applicationTable = (site: OauthSite): readonly string[] => [
  'provider = "microsoft"',
  'grant = "client_credentials"',
  'client_id = "app"',
  `client_secret_file = "${site.path('secret')}"`,
]

/** A table for the login of a person. */
export const personTable = (site: Pick<OauthSite, 'path' | 'authority'>): readonly string[] => [
  'provider = "microsoft"',
  'grant = "refresh_token"',
  'client_id = "public"',
  `refresh_token_file = "${site.path('refresh')}"`,
]
