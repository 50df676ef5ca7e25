/**
 * The daemon: a relay on the real ports, the one owner of its queue, with the control socket for commands and the
 * chores. What was opened is closed in reverse, also when opening fails half-way.
 */
import { readFileSync } from 'node:fs'
import { loadTemplates } from '../bounce/templates.ts'
import type { Config } from '../config/options.ts'
import type { Endpoint, Net } from '../delivery/net.ts'
import { seconds, type Duration } from '../mail/clock.ts'
import { Operations } from '../queue/operations.ts'
import { takeOwnership } from '../queue/owner-lock.ts'
import { openQueueReader } from '../queue/sqlite/queue-reader.ts'
import { openWorkerStore } from '../queue/sqlite/worker-store.ts'
import { systemClock } from '../system/clock.ts'
import { SystemNet } from '../system/net.ts'
import { systemRandom } from '../system/random.ts'
import type { Events, QueueEvent } from '../telemetry/events.ts'
import { ControlServer } from './control.ts'
import { Maintenance } from './maintenance.ts'
import { Relay } from './relay.ts'

export interface DaemonParts {
  readonly config: Config
  /** Every parameter as one would write it, for the texts of notices. */
  readonly written?: ReadonlyMap<string, string> | undefined
  readonly events: Events
  readonly net?: Net | undefined
}

export interface Daemon {
  readonly queueDirectory: string
  /** Where /metrics and /healthz are served; null when off. */
  readonly http: string | null
  /** Where mail is taken. */
  readonly listeners: readonly Endpoint[]
  /** Takes no more mail, lets deliveries end, closes everything. Resolves within ten seconds; may be called twice. */
  stop(): Promise<void>
}

/** A port that we were told to listen on cannot be had (EX_UNAVAILABLE). */
export class CannotListen extends Error {
  override readonly name = 'CannotListen'
  readonly exitCode = 69
}

/** How long deliveries may still run when the daemon is told to stop. */
const GRACE: Duration = seconds(8)

/** Starts a daemon. Rejects with an error that says why not, with the exit code for it, and leaves nothing behind. */
export async function startDaemon(parts: DaemonParts): Promise<Daemon> {
  const closing: Closing[] = []
  const close = async () => {
    for (let last = closing.pop(); last !== undefined; last = closing.pop()) await last()
  }
  try {
    const listeners = await open(parts, closing)
    let stopped: Promise<void> | undefined
    return { listeners, queueDirectory: parts.config.queue_directory, http: null, stop: () => (stopped ??= close()) }
  } catch (error) {
    await close()
    throw error
  }
}

type Closing = () => Promise<void> | void

/** Opens one part after the other, noting how each is closed. */
async function open({ config, written = new Map(), events, net = new SystemNet() }: DaemonParts, closing: Closing[]): Promise<readonly Endpoint[]> {
  const clock = systemClock
  const { templates } = loadTemplates({ config, written }, templateFile(config))
  const directory = config.queue_directory
  const ownership = takeOwnership(directory)
  closing.push(() => ownership.release())
  const { store, opened } = await openWorkerStore({ directory }, { onQuarantined: (message) => events.emit(setAside(message)) })
  closing.push(() => store.close())
  for (const message of opened.quarantined) events.emit(setAside(message))
  const relay = new Relay({ config, templates, clock, random: systemRandom, net, store, events })
  closing.push(() => relay.stop(GRACE))
  const listeners = await listen(relay)
  await relay.start()
  const reader = openQueueReader(directory)
  closing.push(() => reader.close())
  const operations = new Operations({ store, reader, clock, config: () => config, events, wakes: relay.wakes })
  const control = new ControlServer({ queueDirectory: directory, operations, pid: process.pid })
  await control.start()
  closing.push(() => control.stop())
  const maintenance = new Maintenance({ config, clock, store, scheduler: relay.scheduler, events })
  closing.push(() => maintenance.stop())
  return listeners
}

function templateFile({ bounce_template_file: path }: Config): { readonly path: string; readonly content: string } | undefined {
  return path === '' ? undefined : { path, content: readFileSync(path, 'utf8') }
}

const setAside = ({ queueId, why }: { readonly queueId: string; readonly why: string }): QueueEvent => ({
  kind: 'note',
  level: 'error',
  text: `${queueId}: moved to corrupt: ${why}`,
})

async function listen(relay: Relay): Promise<readonly Endpoint[]> {
  try {
    return await relay.listen()
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause
    throw new CannotListen(`cannot listen for mail: ${cause.message}`, { cause })
  }
}
