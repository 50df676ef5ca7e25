/**
 * A daemon in a process of its own that logs in with access tokens. The authorization server and the mail server that takes its tokens are
 * those of `deferd sink --oauth`, in the process of the test.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { stringify } from 'smol-toml'
import { seededRandom } from '../../src/system/random.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { systemNet } from '../../src/system/system-net.ts'
import type { Authority, AuthorityOptions } from '../../src/testkit/index.ts'
import { makeCertificate } from '../../src/testkit/remote/certificate-maker.ts'
import { Sink, type SinkEvent } from '../../src/testkit/scripted/sink.ts'
import { portBelowEphemeral } from './ports.ts'
import { DaemonFolder, type Ended, type StartedProcess } from './started-daemon.ts'

const MAILBOX = 'app@contoso.example'

const issuer = makeCertificate({ seed: 'token site CA', isAuthority: true })
const identity = makeCertificate({ seed: 'token site', names: ['127.0.0.1', 'localhost', 'sink'], issuer })

export class TokenSite implements AsyncDisposable {
  readonly folder = new DaemonFolder()
  /** Events of the sink, as its command prints them. */
  readonly printed: SinkEvent[] = []
  /** Called with each event of the sink. */
  onPrinted: (event: SinkEvent) => void = () => undefined
  readonly ports: { readonly smtp: number; readonly page: number; readonly metrics: number }
  readonly #sink: Sink
  #authority: Authority | null = null
  #hop = ''

  private constructor(options: Partial<AuthorityOptions>, ports: TokenSite['ports']) {
    this.ports = ports
    this.#sink = new Sink({
      net: systemNet,
      clock: systemClock,
      random: seededRandom(1),
      ports: [{ at: { address: '127.0.0.1', port: 0 }, mx: 'sink' }],
      script: null,
      authority: {
        at: { address: '127.0.0.1', port: 0 },
        options: { tenant: 'contoso.example', host: 'localhost', clients: {}, ...options },
        seed: Buffer.alloc(32, 7),
        identity,
      },
      print: (event) => {
        this.printed.push(event)
        this.onPrinted(event)
      },
    })
  }

  static async open(options: Partial<AuthorityOptions>): Promise<TokenSite> {
    const site = new TokenSite(options, {
      smtp: await portBelowEphemeral(),
      page: await portBelowEphemeral(),
      metrics: await portBelowEphemeral(),
    })
    const { ports, authority } = await site.#sink.open()
    site.#authority = authority
    site.#hop = `[127.0.0.1]:${ports[0]?.port}`
    site.write('ca.pem', issuer.cert)
    site.write('passwords', `${site.#hop} ${MAILBOX}:\n`)
    return site
  }

  get authority(): Authority {
    if (this.#authority === null) throw new Error('the sink is not open')
    return this.#authority
  }

  get queueDirectory(): string {
    return join(this.folder.path, 'queue')
  }

  /** Recipients whose mail the mail server has taken. */
  get arrived(): ReadonlySet<string> {
    return new Set(this.printed.flatMap((event) => (event.event === 'message' && event.kept ? event.recipients : [])))
  }

  /** Writes a private file, and returns its path. */
  write(name: string, text: string): string {
    const path = join(this.folder.path, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }

  read(name: string): string {
    return readFileSync(join(this.folder.path, name), 'utf8')
  }

  /** Writes the configuration: `[oauth.m365]` with these members. */
  configure(table: Readonly<Record<string, unknown>>, parameters: Readonly<Record<string, unknown>> = {}): void {
    const ca = join(this.folder.path, 'ca.pem')
    const oauth = { m365: { provider: 'microsoft', tenant: 'contoso.example', token_url: this.authority.tokenUrl, ca_file: ca, ...table } }
    const settings = {
      myhostname: 'relay.example',
      queue_directory: this.queueDirectory,
      smtpd_listen: `127.0.0.1:${this.ports.smtp}`,
      admin_listen: `127.0.0.1:${this.ports.page}`,
      http_listen: `127.0.0.1:${this.ports.metrics}`,
      relayhost: this.#hop,
      minimal_backoff_time: '1s',
      maximal_backoff_time: '2s',
      smtp_tls_security_level: 'secure',
      smtp_tls_CAfile: ca,
      smtp_sasl_oauth: 'm365',
      smtp_sasl_password_maps: join(this.folder.path, 'passwords'),
    }
    this.write('deferd.toml', stringify({ ...settings, ...parameters, oauth }))
  }

  /** Runs `deferd COMMAND…` with the configuration. */
  run(...command: readonly string[]): StartedProcess {
    const config = join(this.folder.path, 'deferd.toml')
    return this.folder.run(command, {}, { env: { ...process.env, DEFERD_CONFIG: config }, isConfigured: true })
  }

  command(...command: readonly string[]): Promise<Ended> {
    return this.run(...command).ended
  }

  async start(): Promise<StartedProcess> {
    const daemon = this.run('start')
    await daemon.prints('listens on')
    return daemon
  }

  async send(to = 'ann@far.example'): Promise<void> {
    const transport = createTransport({ host: '127.0.0.1', port: this.ports.smtp, ignoreTLS: true })
    try {
      await transport.sendMail({ from: MAILBOX, to, subject: 'hi', text: 'hi' })
    } finally {
      transport.close()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.folder.close()
    await this.#sink.close()
  }
}

/** Ends a daemon with SIGTERM, and resolves with its output. */
export function terminated(daemon: StartedProcess): Promise<Ended> {
  daemon.child.kill('SIGTERM')
  return daemon.ended
}

/** Ends a daemon with SIGKILL. */
export async function killed(daemon: StartedProcess): Promise<void> {
  daemon.child.kill('SIGKILL')
  await daemon.ended
}
