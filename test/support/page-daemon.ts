/** A daemon with the page at a port, mail in its queue, and logins, for tests of the page. */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { askForLoginCode } from '../../src/cli/queue-client/api-client.ts'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon, type Daemon } from '../../src/daemon/daemon.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { portBelowEphemeral } from './ports.ts'

export interface SentMail {
  readonly from: string
  readonly to: string
  readonly subject?: string
  /** The whole content, with CRLF at its end and without a line that begins with a dot. */
  readonly content?: Uint8Array
  /** Parameters of MAIL and of RCPT. */
  readonly parameters?: { readonly mail?: string; readonly rcpt?: string }
}

/** A destination at which nothing listens: its mail stays in the queue. */
export const DEAD_HOST = '[127.0.0.1]:9'

/** For `fill`: mail for the dead host is that of a provider, as it is once its mail exchangers are known. */
export async function memberOf(provider: string, queueDirectory: string): Promise<void> {
  const { store, close } = await openStore(queueDirectory, { threads: false, create: true })
  await store.joinProvider(`smtp:${DEAD_HOST}`, provider)
  await close()
}

export type PageRole = 'viewer' | 'operator' | 'admin'

export class PageDaemon {
  readonly url: string
  readonly #home: string
  readonly #daemon: Daemon
  readonly #smtpPort: number

  private constructor(home: string, daemon: Daemon, ports: { readonly page: number; readonly smtp: number }) {
    this.#home = home
    this.#daemon = daemon
    this.#smtpPort = ports.smtp
    this.url = `http://127.0.0.1:${ports.page}/`
  }

  /** `fill` puts mail into the queue directory before the daemon opens it. */
  static async start(more: object = {}, fill: (queueDirectory: string) => Promise<void> = async () => undefined): Promise<PageDaemon> {
    const home = mkdtempSync(join(tmpdir(), 'deferd-page-'))
    await fill(join(home, 'queue'))
    const [page, smtp] = [await portBelowEphemeral(), await portBelowEphemeral()]
    const settings = {
      queue_directory: join(home, 'queue'),
      smtpd_listen: `127.0.0.1:${smtp}`,
      admin_listen: `127.0.0.1:${page}`,
      relayhost: DEAD_HOST,
      ...more,
    }
    const loaded = configFrom(settings, 'relay.example')
    const daemon = await startDaemon({ loaded, events: new Events(() => systemClock.now()) })
    return new PageDaemon(home, daemon, { page, smtp })
  }

  get queueDirectory(): string {
    return join(this.#home, 'queue')
  }

  /** Sends mail with exactly these addresses, which a client library would change. */
  async send(mails: readonly SentMail[]): Promise<void> {
    const socket = connect(this.#smtpPort, '127.0.0.1')
    const lines = createInterface({ input: socket })[Symbol.asyncIterator]()
    const reply = async (code: string): Promise<void> => {
      for (let line = ''; !line.startsWith(`${code} `);) {
        line = String((await lines.next()).value)
        if (!line.startsWith(code)) throw new Error(`unexpected reply: ${line}`)
      }
    }
    const command = (text: string, code: string): Promise<void> => (socket.write(`${text}\r\n`), reply(code))
    await reply('220')
    await command('EHLO client.example', '250')
    for (const { from, to, subject = 'hi', content = Buffer.from(`Subject: ${subject}\r\n\r\nx\r\n`), parameters = {} } of mails) {
      await command(`MAIL FROM:<${from}> ${parameters.mail ?? ''}`.trim(), '250')
      await command(`RCPT TO:<${to}> ${parameters.rcpt ?? ''}`.trim(), '250')
      await command('DATA', '354')
      socket.write(content)
      await command('.', '250')
    }
    await command('QUIT', '221')
    socket.destroy()
  }

  /** A code for a login. */
  async code(role: PageRole = 'admin', user = 'alice'): Promise<string> {
    const made = await askForLoginCode(this.queueDirectory, { user, role, content: role === 'admin' })
    return made?.code ?? ''
  }

  /** The cookie of a new session, as a browser sends it. */
  async cookie(role: PageRole = 'admin', user = 'alice'): Promise<string> {
    const response = await fetch(`${this.url}login`, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: this.url.slice(0, -1), 'content-type': 'application/x-www-form-urlencoded' },
      body: `code=${await this.code(role, user)}`,
    })
    return response.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
  }

  async close(): Promise<void> {
    await this.#daemon.stop()
    rmSync(this.#home, { recursive: true })
  }
}
