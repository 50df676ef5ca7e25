/**
 * `deferd sink`: runs scripted SMTP servers on real ports. On a terminal, prints a line for each fault and each message, and
 * stores the last messages. In a pipe and with --json, prints one JSON object per event. The addresses of the ports and a summary
 * are printed on standard error.
 */
import { basename } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { seededRandom } from '../../system/random.ts'
import { parseListen, placeText } from '../../config/values/endpoints.ts'
import type { Endpoint } from '../../system/net.ts'
import { PROVIDERS, type AuthorityProvider } from '../../testkit/oauth/authority-settings.ts'
import type { RemotePort } from '../../testkit/scripted/remote-ports.ts'
import type { Sink, SinkEvent, SinkPlaces, SinkSummary } from '../../testkit/scripted/sink.ts'
import type { AcceptedLogins } from '../../testkit/remote/server-login.ts'
import type { SinkOauth } from './sink/sink-oauth.ts'
import type { SinkTls } from './sink/sink-tls.ts'
import { countArgument } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Output, Shell } from '../shell/shell.ts'
import { readTextFile } from './simulate/simulate-options.ts'
import { sinkLine } from '../render/sink-line.ts'
import { jsonLine, plural } from '../../presentation/text.ts'
import { addSinkShow, defaultFolder, KEPT_MESSAGES, ownFolder, SinkFolder } from './sink/sink-show.ts'

interface Options {
  readonly listen: readonly RemotePort[]
  readonly script?: string
  readonly seed: number
  readonly json?: true
  readonly keep?: string
  readonly tls?: true
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly auth?: AcceptedLogins
  readonly oauth?: AuthorityProvider | true
  readonly oauthListen: Endpoint
  readonly oauthCertificate?: string
}

const DEFAULT_PORT: RemotePort = { at: { address: '127.0.0.1', port: 2526 }, mx: 'sink' }

/** Parses `127.0.0.1:2526`, optionally with the name of the simulated host: `mx1.example=127.0.0.1:2526`. */
function portArgument(text: string, previous: readonly RemotePort[]): readonly RemotePort[] {
  const [, name = 'sink', place = text] = /^([\w.-]+)=(.*)$/.exec(text) ?? []
  try {
    const port = { at: parseListen(place, '--listen'), mx: name.toLowerCase() }
    return previous[0] === DEFAULT_PORT ? [port] : [...previous, port]
  } catch (cause) {
    throw new InvalidArgumentError(cause instanceof Error ? cause.message : String(cause))
  }
}

function loginArgument(text: string): AcceptedLogins {
  const [, user, password] = /^([^:]+):(.+)$/s.exec(text) ?? []
  if (user === undefined || password === undefined) throw new InvalidArgumentError('expected user:password')
  return { user, password }
}

function endpointArgument(text: string): Endpoint {
  try {
    return parseListen(text, '--oauth-listen')
  } catch (cause) {
    throw new InvalidArgumentError(cause instanceof Error ? cause.message : String(cause))
  }
}

export function addSink(program: Command, shell: Shell): void {
  const sink = program
    .command('sink')
    .description('scripted SMTP servers that fail on request, for testing any client')
    .addOption(
      new Option('--listen <[name=]address:port>', 'address and port, and the name of the host that listens there; repeatable')
        .default([DEFAULT_PORT], '127.0.0.1:2526')
        .argParser(portArgument),
    )
    .option('--script <file>', 'script of failures, or a dialogue; recipient addresses define failures where none of its rules acts')
    .option('--seed <number>', 'seed of random numbers', countArgument, 1)
    .option('--json', 'print all events as JSON; the default when the output is not a terminal')
    .option('--keep <folder>', `folder for the last ${KEPT_MESSAGES} messages; in a terminal, one for temporary files by default`)
    .option('--tls', 'offer STARTTLS, with a certificate that the sink makes')
    .option('--tls-cert <file>', 'certificate (PEM) for --tls, with its chain')
    .option('--tls-key <file>', 'key (PEM) of that certificate; by default in the same file')
    .addOption(
      new Option('--auth [user:password]', 'offer AUTH PLAIN and LOGIN, and accept any login or only this one')
        .preset('any')
        .argParser((text) => (text === 'any' ? text : loginArgument(text))),
    )
    .addOption(
      new Option('--oauth [provider]', 'require access tokens of an authorization server of the sink, like those of a provider')
        .choices(PROVIDERS)
        .preset('microsoft'),
    )
    .addOption(
      new Option('--oauth-listen <address:port>', 'address and port of the authorization server (HTTPS)')
        .default({ address: '127.0.0.1', port: 2543 }, '127.0.0.1:2543')
        .argParser(endpointArgument),
    )
    .option('--oauth-certificate <file>', 'certificate (PEM, RSA) of the OAuth client, in place of its secret')
    .addHelpText(
      'after',
      `
Recipient addresses define the failure where no rule of the script acts:
  550@…  451+4.7.1+not+now@…  greylist+5m@…  first-2+451@…  slow+10s@…  drop-after-dot@…  full@…

SIGINT and SIGTERM print a summary and exit.

Examples:
  deferd sink
  deferd sink --listen 127.0.0.1:2526 --script faults.toml --seed 7
  deferd sink --listen mx1.example=127.0.0.1:2526 --listen mx2.example=127.0.0.1:2527
  deferd sink --tls --auth app:secret
  deferd sink --oauth`,
    )
    .action((options: Options) => runSink(shell, options))
  addSinkShow(sink, shell)
}

async function runSink(shell: Shell, options: Options): Promise<void> {
  // Loaded on demand, because the scripted server loads slowly and other commands do not need it.
  const { readScriptOrDialogue } = await import('../../testkit/record/recorded-dialogue.ts')
  const { Sink: RealSink } = await import('../../testkit/scripted/sink.ts')
  const { systemNet } = await import('../../system/system-net.ts')
  const { script: path } = options
  const script = path === undefined ? null : readScriptOrDialogue(readTextFile(path), basename(path))
  const lines = new LineOutput(shell.stdout)
  const printed = printerOf(shell, options)
  const tls = await tlsOf(shell, options)
  const oauth = await oauthOf(shell, options)
  const sink = new RealSink({
    net: systemNet,
    clock: shell.clock,
    random: seededRandom(options.seed),
    ports: options.listen,
    script,
    identity: tls?.identity,
    logins: options.auth,
    authority: oauth?.authority,
    print: (event) => lines.print(printed.line(event)),
    keep: printed.folder && ((content) => printed.folder?.add(content)),
  })
  try {
    const places = await open(sink, shell)
    if (tls !== undefined) await shell.stderr.write(tls.introduction)
    if (oauth !== undefined) await shell.stderr.write(oauth.introduction(places))
    await Promise.race([shell.untilStopped(() => undefined), lines.broken])
  } finally {
    await sink.close()
  }
  const summary = sink.summary()
  if (printed.json) lines.print(jsonLine({ event: 'summary', ...summary }))
  await lines.flushed()
  await shell.stderr.write(inWords(summary))
}

interface Printer {
  readonly json: boolean
  readonly folder: SinkFolder | undefined
  line(event: SinkEvent): string
}

function printerOf({ clock, stdout, uid }: Shell, options: Options): Printer {
  const json = options.json === true || stdout.columns === null
  const path = options.keep ?? (json ? undefined : defaultFolder(uid))
  const folder = path === undefined ? undefined : new SinkFolder(path, uid)
  let messages = 0
  const line = (event: SinkEvent): string => {
    const kept = event.event === 'message' && event.kept
    if (kept) messages++
    return json ? jsonLine(event) : sinkLine(event, { clock, number: kept ? messages : null })
  }
  return { json, folder, line }
}

/** STARTTLS of the ports; undefined without --tls. Throws CommandError for options that exclude each other. */
async function tlsOf(shell: Shell, options: Options): Promise<SinkTls | undefined> {
  const { tls, tlsCert, tlsKey, auth, oauth, keep = defaultFolder(shell.uid) } = options
  if (tlsKey !== undefined && tlsCert === undefined) throw new CommandError(EX.usage, '--tls-key needs --tls-cert')
  if (tlsCert !== undefined && tls === undefined) throw new CommandError(EX.usage, '--tls-cert needs --tls')
  if (oauth !== undefined && auth !== undefined)
    throw new CommandError(EX.usage, '--auth and --oauth exclude each other: the ports ask for passwords or for tokens')
  if (oauth !== undefined && tls !== undefined)
    throw new CommandError(EX.usage, '--oauth has STARTTLS with a certificate of its own: leave --tls out')
  if (tls === undefined) return undefined
  const { givenTls, madeTls } = await import('./sink/sink-tls.ts')
  if (tlsCert !== undefined) return givenTls(tlsCert, tlsKey)
  const { makeCertificate } = await import('../../testkit/remote/certificate-maker.ts')
  return madeTls(ownFolder(keep, shell.uid), options.listen, { random: shell.random, makeCertificate })
}

/** The authorization server, with its files in the folder of the sink; undefined without one. */
async function oauthOf(shell: Shell, options: Options): Promise<SinkOauth | undefined> {
  const { oauth, oauthListen: at, oauthCertificate, keep = defaultFolder(shell.uid) } = options
  if (oauth === undefined) {
    if (oauthCertificate !== undefined) throw new CommandError(EX.usage, '--oauth-certificate needs --oauth')
    return undefined
  }
  const { prepareSinkOauth } = await import('./sink/sink-oauth.ts')
  const { makeCertificate } = await import('../../testkit/remote/certificate-maker.ts')
  const certificate = oauthCertificate === undefined ? undefined : readTextFile(oauthCertificate)
  const provider = oauth === true ? 'microsoft' : oauth
  return prepareSinkOauth({ provider, at, certificate }, ownFolder(keep, shell.uid), {
    ports: options.listen,
    random: shell.random,
    makeCertificate,
  })
}

async function open(sink: Sink, shell: Shell): Promise<SinkPlaces> {
  try {
    const places = await sink.open()
    await shell.stderr.write(`deferd sink listens on ${places.ports.map(placeText).join(', ')}\n`)
    return places
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause
    throw new CommandError(EX.unavailable, `cannot listen: ${cause.message}`, { cause })
  }
}

function inWords({
  connections,
  refused_connections: refused,
  messages_kept: messages,
  recipients_kept: recipients,
  replies,
  rules,
}: SinkSummary): string {
  const counted = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} × ${count}`)
      .join(', ')
  return [
    `${plural(connections, 'connection')} accepted, ${refused} refused; ${plural(messages, 'message')} for ${plural(recipients, 'recipient')} stored`,
    `replies: ${counted(replies) || 'none'}`,
    `rules applied: ${counted(rules) || 'none'}`,
  ]
    .map((line) => `${line}\n`)
    .join('')
}

/** Writes lines in order. All pending lines are written together. */
class LineOutput {
  /** Rejects with BrokenPipe when the reader closes the pipe. */
  readonly broken: Promise<never>
  readonly #output: Output
  readonly #fail: (error: unknown) => void
  #waiting = ''
  #writing: Promise<void> | undefined

  constructor(output: Output) {
    this.#output = output
    const { promise, reject } = Promise.withResolvers<never>()
    this.broken = promise
    this.#fail = reject
  }

  print(line: string): void {
    if (line === '') return
    this.#waiting += line
    this.#writing ??= this.#write()
  }

  async flushed(): Promise<void> {
    await this.#writing
  }

  async #write(): Promise<void> {
    try {
      while (this.#waiting !== '') {
        const text = this.#waiting
        this.#waiting = ''
        await this.#output.write(text)
      }
    } catch (error) {
      this.#fail(error)
    }
    this.#writing = undefined
  }
}
