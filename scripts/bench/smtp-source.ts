/**
 * smtp-source and smtp-sink, the client and the sink that come with Postfix. They take less CPU time than those of the bench, and measure
 * no latencies.
 */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Load } from './cases.ts'
import { freePort, greeted, startChild, type Command } from './child.ts'
import { tailOf, type Sink } from './sink.ts'

/** The reason why a load cannot be sent here; null when it can. */
export function reasonAgainstClient({ client }: Pick<Load, 'client'>, path = process.env['PATH'] ?? ''): string | null {
  const isMissing = (program: string) => !path.split(delimiter).some((folder) => existsSync(join(folder, program)))
  if (client === 'own' || !['smtp-source', 'smtp-sink'].some(isMissing)) return null
  return 'smtp-source and smtp-sink, which come with Postfix, are not installed'
}

/** The command that sends so many messages to a port of 127.0.0.1. It fails at the first reply that refuses one. */
export function smtpSource({ sessions, bytes, recipients, connections }: Load, port: number, messages: number): Command {
  const counts = { s: Math.min(sessions, messages), m: messages, l: bytes, r: recipients }
  const options = Object.entries(counts).flatMap(([name, count]) => [`-${name}`, String(count)])
  const kept = connections === 'kept' ? ['-d'] : []
  const addresses = ['-f', 'sender@load.test', '-t', 'rcpt@sink.test']
  return { program: 'smtp-source', args: [...options, ...kept, ...addresses, `127.0.0.1:${port}`], cwd: '/' }
}

/** Connections that wait to be accepted. */
const BACKLOG = 1_000

/** Starts an smtp-sink. It counts messages only, and knows neither their numbers nor their times. */
export async function startSmtpSink(folder: string, signal: AbortSignal): Promise<Sink> {
  const port = await freePort()
  const said = join(folder, 'smtp-sink')
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const args = [...user, '-c', `127.0.0.1:${port}`, String(BACKLOG)]
  const child = await startChild('smtp-sink', { program: 'smtp-sink', args, cwd: '/' }, said)
  try {
    await greeted(child, port, signal)
  } catch (error) {
    await child.stop()
    throw error
  }
  return {
    child,
    port,
    counts: () => ({ arrived: lastCount(tailOf(said)), refused: 0 }),
    takeNumbers: () => 0,
    position: () => 0,
    arrivalsSince: () => [],
  }
}

/** The last complete count of messages in what smtp-sink has printed. */
export const lastCount = (text: string): number => Number([...text.matchAll(/mesg=(\d+)\r/g)].at(-1)?.[1] ?? 0)
