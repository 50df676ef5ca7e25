/**
 * `deferd record`: a proxy for one relay that writes how it answered as a script of remote servers. The address of the port and the number of
 * rules are printed on standard error.
 */
import { isIP } from 'node:net'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { parseListen, placeText } from '../../../config/values/endpoints.ts'
import { plural } from '../../../presentation/text.ts'
import { MINUTE, type Duration } from '../../../system/clock.ts'
import type { Endpoint } from '../../../system/net.ts'
import type { Recorder, RecordedRelay } from '../../../testkit/record/recorder.ts'
import type { HostIdentity } from '../../../testkit/remote/policy-host.ts'
import { durationArgument } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import type { Shell } from '../../shell/shell.ts'
import { defaultFolder, ownFolder } from '../sink/sink-show.ts'
import { assertFree, writeSessionFile } from './session-file.ts'

interface Options {
  readonly relay: Pick<RecordedRelay, 'host' | 'port'>
  readonly listen: Endpoint
  readonly out: string
  readonly keepAddresses?: true
  readonly maxGap: Duration
  readonly tls?: true
  readonly force?: true
}

function relayArgument(text: string): Options['relay'] {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^\s:[\]/]+)):(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits ?? 0)
  if (port < 1 || port > 65_535) throw new InvalidArgumentError('Expected a host and a port such as mx.example.net:25.')
  return { host: bracketed ?? plain ?? '', port }
}

function listenArgument(text: string): Endpoint {
  try {
    return parseListen(/^\d+$/.test(text) ? `127.0.0.1:${text}` : text, '--listen')
  } catch (cause) {
    throw new InvalidArgumentError(cause instanceof Error ? cause.message : String(cause))
  }
}

export function addRecord(program: Command, shell: Shell): void {
  program
    .command('record')
    .description('a proxy for one relay that records its failures as a script for sinks, labs and tests')
    .addOption(
      new Option('--relay <host:port>', 'relay to which all mail goes; the only host that is connected to')
        .makeOptionMandatory()
        .argParser(relayArgument),
    )
    .addOption(
      new Option('--listen <[address:]port>', 'address and port for clients')
        .default(listenArgument('2526'), '127.0.0.1:2526')
        .argParser(listenArgument),
    )
    .option('--out <file>', 'file for the script, with mode 0600', 'session.toml')
    .option('--keep-addresses', 'keep the addresses of senders and recipients, which are masked otherwise')
    .addOption(
      new Option('--max-gap <time>', 'longest time that a failure is taken to last after it was seen last, when it ends later')
        .default(5 * MINUTE, '5m')
        .argParser(durationArgument),
    )
    .option('--tls', 'offer STARTTLS if the relay does, with a certificate of this proxy; without it, STARTTLS is removed')
    .option('--force', 'replace the file')
    .addHelpText(
      'after',
      `
SIGINT and SIGTERM write the file and exit. Contents and logins are never written.

Examples:
  deferd record --relay mx.example.net:25 --listen 127.0.0.1:2526
  deferd record --relay mx.example.net:587 --tls --out monday.toml
  deferd sink --script session.toml`,
    )
    .action((options: Options) => runRecord(shell, options))
}

async function runRecord(shell: Shell, options: Options): Promise<void> {
  const { out, force = false, tls = false, keepAddresses: keepsAddresses = false, maxGap } = options
  assertFree(out, force)
  // Loaded on demand, because the scripted server loads slowly and other commands do not need it.
  const { Recorder: RealRecorder } = await import('../../../testkit/record/recorder.ts')
  const { recordedScript } = await import('../../../testkit/record/recorded-script.ts')
  const { systemNet } = await import('../../../system/system-net.ts')
  const relay = await withAddresses(options.relay)
  const identity = tls ? await identityOf(shell, options.listen) : null
  const recorder = new RealRecorder({ net: systemNet, clock: shell.clock, relay, keepsAddresses, identity })
  await open(recorder, options, shell)
  await shell.untilStopped(() => undefined)
  const recording = await recorder.close()
  const { text, rules } = recordedScript(recording, { hasTls: tls, keepsAddresses, maxGap })
  await writeSessionFile(text, { path: out, mayReplace: force, pid: shell.pid })
  await shell.stderr.write(
    `${plural(recording.sessions, 'session')} of ${plural(recording.clients, 'client')}: ${plural(rules, 'rule')} in ${out}\n`,
  )
}

/** Looks up the relay. Rejects with CommandError (69) without an address. */
async function withAddresses({ host, port }: Options['relay']): Promise<RecordedRelay> {
  if (isIP(host) !== 0) return { host, port, addresses: [host] }
  const { systemNet } = await import('../../../system/system-net.ts')
  const found = await systemNet.lookupHost(host)
  if (found.kind === 'found') return { host, port, addresses: found.records }
  const why = found.kind === 'failed' ? found.reason : 'it has no address'
  throw new CommandError(EX.unavailable, `cannot look up ${host} (--relay): ${why}; name a host that exists, or its address`)
}

/** A certificate of the CA of `deferd sink --tls`, whose file is printed. */
async function identityOf(shell: Shell, at: Endpoint): Promise<HostIdentity> {
  const { madeTls } = await import('../sink/sink-tls.ts')
  const { makeCertificate } = await import('../../../testkit/remote/certificate-maker.ts')
  const folder = ownFolder(defaultFolder(shell.uid), shell.uid)
  const { identity, introduction } = madeTls(folder, [{ at, mx: 'localhost' }], { random: shell.random, makeCertificate })
  await shell.stderr.write(introduction)
  return identity
}

async function open(recorder: Recorder, { listen, relay }: Options, shell: Shell): Promise<void> {
  try {
    const at = await recorder.open(listen)
    const to = placeText({ address: relay.host, port: relay.port })
    await shell.stderr.write(`deferd record listens on ${placeText(at)}, and sends all mail to ${to}\n`)
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause
    throw new CommandError(EX.unavailable, `cannot listen (--listen ${placeText(listen)}): ${cause.message}; name another port`, { cause })
  }
}
