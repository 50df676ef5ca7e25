/**
 * `deferd lab`: runs worlds of the test kit for tests in any language, behind one HTTP port. The first line of standard output is a JSON
 * object with the URL, written when the port is open.
 */
import { statSync } from 'node:fs'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { parseListen, placeText } from '../../../config/values/endpoints.ts'
import type { RelayConfig } from '../../../config/relay-config.ts'
import { jsonLine } from '../../../presentation/text.ts'
import type { Endpoint } from '../../../system/net.ts'
import { systemNet } from '../../../system/system-net.ts'
import { HOUR, MINUTE, type Duration } from '../../../system/clock.ts'
import { VERSION } from '../../../system/version.ts'
import type { Lab } from '../../../lab/lab.ts'
import type { LabWorld } from '../../../lab/lab-world.ts'
import { configFileOf, countArgument, durationArgument } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import type { Shell } from '../../shell/shell.ts'
import { readTextFile } from '../simulate/simulate-options.ts'

interface Options {
  readonly http: Endpoint
  readonly smtp?: number
  readonly script?: string
  readonly seed?: number
  readonly speed?: number
  readonly maxWorlds: number
  readonly idle: Duration
  readonly lifetime: Duration
  readonly tokenFile?: string
  readonly allowWebhook?: readonly string[]
  readonly insecure?: true
  readonly json?: true
  readonly parent?: true
}

function endpointArgument(text: string): Endpoint {
  try {
    // A port alone is one of loopback, because a lab is open to everyone who reaches it.
    return parseListen(/^\d+$/.test(text) ? `127.0.0.1:${text}` : text, '--http')
  } catch (cause) {
    throw new InvalidArgumentError(cause instanceof Error ? cause.message : String(cause))
  }
}

function portArgument(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new InvalidArgumentError('Expected a port number.')
  return Number(text)
}

function speedArgument(text: string): number {
  const speed = text.trim() === '' ? Number.NaN : Number(text)
  if (!(speed >= 0 && speed <= 1_000_000)) throw new InvalidArgumentError('Expected a factor such as 1 or 3600.')
  return speed
}

/** Adds a target to the earlier ones. */
function targetArgument(text: string, before: readonly string[] = []): readonly string[] {
  const url = URL.canParse(`http://${text}`) ? new URL(`http://${text}`) : null
  if (url === null || !/^[^@/?#]+:\d+$/.test(text)) throw new InvalidArgumentError('Expected HOST:PORT.')
  return [...before, `${url.hostname}:${/\d+$/.exec(text)?.[0]}`]
}

export function addLab(program: Command, shell: Shell): void {
  program
    .command('lab')
    .description('relays in virtual time behind an HTTP port, for tests in any language')
    .addOption(
      new Option('--http <[address:]port>', 'address and port of the API; port 0 selects a free one')
        .default(endpointArgument('2570'), '127.0.0.1:2570')
        .argParser(endpointArgument),
    )
    .option('--smtp <port>', 'also create the world "default" with this SMTP port, in real time', portArgument)
    .option('--script <file>', 'script of failures for the world "default"; --config names its configuration')
    .option('--seed <number>', 'seed of the world "default" (default: 1)', countArgument)
    .option('--speed <factor>', 'speed of the clock of the world "default" (default: 1)', speedArgument)
    .option('--max-worlds <number>', 'number of worlds that may be open at once', countArgument, 64)
    .addOption(
      new Option('--idle <time>', 'time without a request after which a world ends; 0 for never')
        .default(10 * MINUTE, '10m')
        .argParser(durationArgument),
    )
    .addOption(new Option('--lifetime <time>', 'time after which a world ends').default(2 * HOUR, '2h').argParser(durationArgument))
    .option('--token-file <file>', 'file of mode 0600 with the token that clients send; required beyond loopback')
    .option('--allow-webhook <host:port>', 'target beyond loopback to which webhooks may lead; repeatable', targetArgument)
    .option('--insecure', 'permit an address beyond loopback without TLS')
    .option('--json', 'print the events of all worlds as JSON')
    .option('--parent', 'end with standard input')
    .addHelpText(
      'after',
      `
The first line of the output is a JSON object with the URL. SIGINT and SIGTERM close all worlds.

Examples:
  deferd lab
  deferd lab --http 0 --parent
  deferd lab --smtp 2525 --script faults.toml --speed 3600`,
    )
    // The program has --token-file, too, for --host.
    .action((_options: Options, command: Command) => runLab(shell, command.optsWithGlobals<Options>(), command))
}

const LOOPBACK = /^(?:127\.|::1$)/

/** The token of the clients; null on loopback without --token-file. Throws CommandError for a lab that everyone could use. */
function tokenOf({ http: { address }, tokenFile, insecure }: Options): string | null {
  const token = tokenFile === undefined ? null : privateToken(tokenFile)
  if (LOOPBACK.test(address)) return token
  const refused = (text: string) => new CommandError(EX.config, `--http ${address} is beyond loopback: ${text}`)
  if (token === null) throw refused('add --token-file with a file of mode 0600 that has the token of the clients')
  if (insecure !== true) throw refused('the lab has no TLS; add --insecure to send the token and all mail without it')
  return token
}

function privateToken(path: string): string {
  const token = readTextFile(path).trim()
  if ((statSync(path).mode & 0o077) !== 0) throw new CommandError(EX.config, `--token-file: others may read ${path}: chmod 600 ${path}`)
  if (/^[\w.~+/-]{16,}=*$/.test(token)) return token
  throw new CommandError(EX.config, `--token-file: ${path} has no token of at least 16 letters, digits and any of ._~+/-`)
}

async function runLab(shell: Shell, options: Options, command: Command): Promise<void> {
  const token = tokenOf(options)
  // Loaded on demand, because the relay and its API load slowly and other commands do not need them.
  const { Lab: RealLab } = await import('../../../lab/lab.ts')
  const { LabServer } = await import('../../../lab/lab-server.ts')
  const { WebhookTargets } = await import('../../../lab/webhook-targets.ts')
  const { clock } = shell
  const { maxWorlds, idle, lifetime } = options
  const failed = (text: string): void => void shell.stderr.write(`deferd lab: ${text}\n`).catch(() => undefined)
  const opened = options.json === true ? (world: LabWorld) => printEvents(shell, world) : () => undefined
  const targets = new WebhookTargets({ net: systemNet, clock, allowed: new Set(options.allowWebhook) })
  const lab = new RealLab({ clock, limits: { maxWorlds, idle, lifetime }, address: options.http.address, targets, opened })
  const server = new LabServer({ lab, clock, token, failed })
  try {
    const world = await openDefault(lab, options, command)
    const at = await listening(`--http ${placeText(options.http)}`, () => server.listen(options.http))
    const smtp = world?.facts.smtp
    const url = `http://${placeText(at)}`
    await shell.stdout.write(
      jsonLine({ http: url, version: VERSION, pid: shell.pid, ...(smtp === undefined || smtp === null ? {} : { smtp: placeText(smtp) }) }),
    )
    if (!LOOPBACK.test(at.address)) failed(`${url} is open to other machines, without TLS: the token and all mail can be read on the way`)
    await Promise.race([shell.untilStopped(() => undefined), ...(options.parent === true ? [ended(shell.stdin)] : [])])
  } finally {
    await server.close()
    await lab.close()
  }
}

/** Creates the world of the command line; null without --smtp. */
async function openDefault(lab: Lab, { smtp, script, seed, speed }: Options, command: Command): Promise<LabWorld | null> {
  const file = configFileOf(command)
  if (smtp === undefined) {
    const useless = Object.entries({ script, seed, speed, config: file }).find(([, value]) => value !== undefined)
    if (useless !== undefined) throw new CommandError(EX.usage, `--${useless[0]} is of the world "default": add --smtp with its port`)
    return null
  }
  const { DEFAULT_STORE } = await import('../../../testkit/options/world-stores.ts')
  const { readToml } = await import('../../../testkit/remote/script.ts')
  return listening(`--smtp ${smtp}`, () =>
    lab.create({
      seed: seed ?? 1,
      config: file === undefined ? {} : (readToml(readTextFile(file), file) as RelayConfig),
      script: script === undefined ? undefined : readTextFile(script),
      store: DEFAULT_STORE,
      tls: 'none',
      speed: speed ?? 1,
      relay: true,
      remotePorts: [],
      name: 'default',
      port: smtp,
      isLasting: true,
    }),
  )
}

/** Opens a port. Rejects with CommandError (69) when the system refuses. */
async function listening<T>(what: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause
    throw new CommandError(EX.unavailable, `cannot listen (${what}): ${cause.message}; name another port`, { cause })
  }
}

function printEvents(shell: Shell, { facts: { id }, world }: LabWorld): void {
  world.history().onEvent((event) => void shell.stdout.write(jsonLine({ world: id, ...event })).catch(() => undefined))
}

async function ended(stdin: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of stdin);
}
