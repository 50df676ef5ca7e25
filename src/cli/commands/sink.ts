/**
 * `deferd sink`: mail servers that fail as told, on real ports, in front of any client. What happens is printed as one
 * JSON object per line on standard output; what people want to know goes to standard error.
 */
import { basename } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { seededRandom } from '../../mail/random.ts'
import { parseListen } from '../../config/endpoints.ts'
import type { Sink, SinkPort, SinkSummary } from '../../testkit/sink.ts'
import { countArgument } from '../command.ts'
import { CommandError, EX, type Output, type Shell } from '../shell.ts'
import { readTextFile } from '../simulation-input.ts'
import { jsonLine, plural } from '../text.ts'

interface Options {
  readonly listen: readonly SinkPort[]
  readonly script?: string
  readonly seed: number
}

const DEFAULT_PORT: SinkPort = { at: { address: '127.0.0.1', port: 2526 }, mx: 'sink' }

/** `127.0.0.1:2526`, or with the name of the host that is played there: `mx1.example=127.0.0.1:2526`. */
function portArgument(text: string, previous: readonly SinkPort[]): readonly SinkPort[] {
  const [, name = 'sink', place = text] = /^([\w.-]+)=(.*)$/.exec(text) ?? []
  try {
    const port = { at: parseListen(place, '--listen'), mx: name.toLowerCase() }
    return previous[0] === DEFAULT_PORT ? [port] : [...previous, port]
  } catch (cause) {
    throw new InvalidArgumentError(cause instanceof Error ? cause.message : String(cause))
  }
}

export function addSink(program: Command, shell: Shell): void {
  program
    .command('sink')
    .description('mail servers that fail as told, for testing any client')
    .addOption(
      new Option('--listen <[name=]address:port>', 'where to listen, and as which host; may be given several times')
        .default([DEFAULT_PORT], '127.0.0.1:2526')
        .argParser(portArgument),
    )
    .option('--script <file>', 'how to fail; without one, addresses say what they want')
    .option('--seed <number>', 'the seed of probabilities', countArgument, 1)
    .addHelpText(
      'after',
      `
Without a script the recipients' addresses say what they want:
  550@…  451+4.7.1+not+now@…  greylist+5m@…  first-2+451@…  slow+10s@…  drop-after-dot@…  full@…

SIGINT or SIGTERM ends it with a summary.

Examples:
  deferd sink
  deferd sink --listen 127.0.0.1:2526 --script faults.toml --seed 7
  deferd sink --listen mx1.example=127.0.0.1:2526 --listen mx2.example=127.0.0.1:2527`,
    )
    .action((options: Options) => runSink(shell, options))
}

async function runSink(shell: Shell, options: Options): Promise<void> {
  // The far side is large, and no other command needs it.
  const { readScript } = await import('../../testkit/far-side/script.ts')
  const { Sink: RealSink } = await import('../../testkit/sink.ts')
  const { systemNet } = await import('../../system/net.ts')
  const { script: path } = options
  const script = path === undefined ? null : readScript(readTextFile(path), basename(path))
  const lines = new LineOutput(shell.stdout)
  const sink = new RealSink({
    net: systemNet,
    clock: shell.clock,
    random: seededRandom(options.seed),
    ports: options.listen,
    script,
    print: (event) => lines.print(event),
  })
  try {
    await open(sink, shell)
    await Promise.race([shell.untilStopped(() => undefined), lines.broken])
  } finally {
    await sink.close()
  }
  const summary = sink.summary()
  lines.print({ event: 'summary', ...summary })
  await lines.flushed()
  await shell.stderr.write(inWords(summary))
}

async function open(sink: Sink, shell: Shell): Promise<void> {
  try {
    const places = await sink.open()
    const shown = places.map(({ address, port }) => (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`))
    await shell.stderr.write(`deferd sink takes mail on ${shown.join(', ')}\n`)
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
    `${plural(connections, 'connection')} taken, ${refused} refused; ${plural(messages, 'message')} for ${plural(recipients, 'recipient')} kept`,
    `replies: ${counted(replies) || 'none'}`,
    `rules that acted: ${counted(rules) || 'none'}`,
  ]
    .map((line) => `${line}\n`)
    .join('')
}

/** Events come faster than they can be written now and then; they are written in order, many at a time. */
class LineOutput {
  /** Rejects when nobody reads any more. */
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

  print(event: object): void {
    this.#waiting += jsonLine(event)
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
