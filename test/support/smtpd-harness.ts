/**
 * An SMTP server on a virtual clock, an intake that records submissions, and clients that send bytes.
 */
import type { Socket } from 'node:net'
import { defaultConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/options.ts'
import type { Clock, Duration } from '../../src/system/clock.ts'
import type { Net } from '../../src/system/net.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import type { SmtpReply } from '../../src/mail/smtp-reply.ts'
import { seededRandom } from '../../src/system/random.ts'
import { openAccess } from '../../src/access/access-tables.ts'
import { DeadEnds } from '../../src/delivery/routing/dead-ends.ts'
import { Router } from '../../src/delivery/routing/router.ts'
import { openRoutingTables } from '../../src/delivery/routing/routing-tables.ts'
import { Rewriting } from '../../src/rewriting/rewriting.ts'
import { openTables } from '../../src/rewriting/tables.ts'
import { Acceptor } from '../../src/queue/intake/acceptor.ts'
import type { Intake } from '../../src/queue/intake/intake.ts'
import { StoreUnavailable } from '../../src/store/queue-store.ts'
import { SessionRecordings } from '../../src/sessions/session-recordings.ts'
import type { Traces } from '../../src/sessions/traces.ts'
import { startSmtpd, type Smtpd } from '../../src/smtpd/server.ts'
import { Events, type QueueEvent } from '../../src/telemetry/events.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { MemoryNet, type RemoteHosts } from '../../src/testkit/virtual/memory-net.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

type Entry = Parameters<Intake['take']>[0]

/** An accepted message, with its content in one string (`latin1`: one character per byte). */
export interface Taken extends Entry {
  readonly text: string
  /** Content without the Received field of the relay. */
  readonly original: string
}

/** An intake that records messages instead of queueing them; rejects with StoreUnavailable while `unavailable`. */
export class RecordingIntake {
  readonly taken: Taken[] = []
  readonly staged = new Map<number, Uint8Array[]>()
  readonly unstaged: number[] = []
  stageFrom = 5
  unavailable = false
  /** Reply to MAIL while mail is refused. */
  refusing: SmtpReply | undefined
  /** Maximum number of chunks that were staged at once. */
  mostHeld = 0
  #row = 0
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  begin() {
    const arrivedAt = this.#now()
    const id = ++this.#row
    return { id, arrivedAt, queueId: formatQueueId(arrivedAt, id) }
  }

  async stage(body: number, from: number, chunks: readonly Uint8Array[]): Promise<undefined> {
    this.#mustBeAvailable()
    const before = this.staged.get(body) ?? []
    if (before.length !== from) throw new Error(`staged part ${from} after ${before.length}`)
    this.staged.set(body, [...before, ...chunks])
    this.mostHeld = Math.max(this.mostHeld, chunks.length)
    return undefined
  }

  async unstage(body: number): Promise<void> {
    this.unstaged.push(body)
    this.staged.delete(body)
  }

  admit(): { readonly share: string | undefined } {
    return { share: undefined }
  }

  admitHeld(): undefined {
    return undefined
  }

  charge(): undefined {
    return undefined
  }

  async chargeDiscarded(): Promise<undefined> {
    return undefined
  }

  recipientRefusal(): undefined {
    return undefined
  }

  settled(): void {}

  async take(entry: Entry): Promise<void> {
    this.#mustBeAvailable()
    const parts = [...(this.staged.get(entry.message.contentId) ?? []), ...entry.content]
    const text = Buffer.concat(parts).toString('latin1')
    this.taken.push({ ...entry, text, original: text.replace(/^Received: [^\r]*\r\n(?:[ \t][^\r]*\r\n)*/, '') })
  }

  async refusal(): Promise<SmtpReply | undefined> {
    return this.refusing
  }

  #mustBeAvailable(): void {
    if (this.unavailable) throw new StoreUnavailable('the disk is full')
  }
}

/** A client that sends given bytes. */
export class RawClient {
  /** Everything received from the server. */
  heard = ''
  closed = false
  readonly socket: Socket
  readonly #rest: () => Promise<void>

  constructor(socket: Socket, rest: () => Promise<void>) {
    this.socket = socket
    this.#rest = rest
    socket.on('data', (bytes: Buffer) => (this.heard += bytes.toString('latin1')))
    socket.on('close', () => (this.closed = true))
    socket.on('error', () => (this.closed = true))
  }

  /** Sends each piece as a separate packet, and returns the bytes received meanwhile. */
  async send(...packets: readonly (string | Buffer)[]): Promise<string> {
    const before = this.heard.length
    for (const packet of packets) {
      if (!this.socket.writable) break
      this.socket.write(typeof packet === 'string' ? Buffer.from(packet, 'latin1') : packet)
      await this.#rest()
    }
    return this.heard.slice(before)
  }

  /** Sends command lines, each after the reply to the previous one; returns the last reply. */
  async say(...lines: readonly string[]): Promise<string> {
    let answer = ''
    for (const line of lines) answer = await this.send(`${line}\r\n`)
    return answer.trimEnd()
  }

  /** Sends EHLO, MAIL, RCPT and DATA; returns after the 354 reply. */
  async upToData(recipients: readonly string[] = ['ann@far.example']): Promise<string> {
    const rcpts = recipients.map((recipient) => `RCPT TO:<${recipient}>`)
    return this.say('EHLO client.example', 'MAIL FROM:<app@us.example>', ...rcpts, 'DATA')
  }
}

export interface SmtpdHarness {
  readonly clock: VirtualClock
  readonly intake: RecordingIntake
  readonly events: QueueEvent[]
  /** Domains flushed by ETRN. */
  readonly flushed: readonly string[]
  readonly smtpd: Smtpd
  readonly traces: Traces
  /** Applies this configuration to later connections. */
  readonly reload: (config: Config) => Promise<void>
  readonly net: MemoryNet
  /** Connects to the n-th listener, counted from 0; `eager` is sent at once, before the greeting. */
  readonly connect: (from?: string, eager?: string, listener?: number) => Promise<RawClient>
  /** Advances the clock by this time and runs all work that is due. */
  readonly wait: (time: Duration) => Promise<void>
  readonly of: <K extends QueueEvent['kind']>(kind: K) => Extract<QueueEvent, { kind: K }>[]
}

/** An address that is not in mynetworks. */
export const OUTSIDER = '203.0.113.9'

/** Starts an SMTP server on a network and a clock, with an intake that records submissions. */
export async function startSmtpdOn(net: Net, clock: Clock, settings: Partial<Config> = {}) {
  const config: Config = { ...defaultConfig('relay.example').config, ...settings }
  const events = new Events(() => clock.wall.now())
  const seen: QueueEvent[] = []
  events.listen((event) => seen.push(event))
  const intake = new RecordingIntake(() => clock.now())
  const flushed: string[] = []
  const flushDomain = (domain: string): boolean => flushed.push(domain) > 0
  const changing = (current: Config) => {
    const router = new Router(current, openRoutingTables(current).tables)
    const deadEnds = new DeadEnds({ config: current, net, clock, router, rewriting: Rewriting.of(current, openTables(current).tables) })
    return {
      config: current,
      deadEnds,
      acceptor: new Acceptor({ intake, config: current, clock, events }),
      access: openAccess(current).access,
    }
  }
  const recordings = new SessionRecordings({ clock, keepsDeliveries: () => false })
  const smtpd = await startSmtpd({
    recordings,
    ...changing(config),
    net,
    clock,
    random: seededRandom(1),
    events,
    intake,
    flushDomain,
  })
  return { smtpd, traces: recordings.traces, intake, flushed, events: seen, reload: (later: Config) => smtpd.reload(changing(later)) }
}

/** `dns` answers look-ups; by default every name has one address, of another machine. */
export async function openSmtpd(
  settings: Partial<Config> = {},
  dns: Partial<Pick<RemoteHosts, 'lookupMx' | 'lookupNames' | 'lookupAddresses'>> = {},
): Promise<SmtpdHarness> {
  const clock = new VirtualClock()
  const net = new MemoryNet(clock, {
    lookupMx: () => ({ kind: 'none', nxdomain: false }),
    lookupAddresses: (_, family) => (family === 4 ? { kind: 'found', records: ['198.51.100.7'] } : { kind: 'none', nxdomain: false }),
    dial: () => ({ kind: 'closed', code: 'ECONNREFUSED' }),
    ...dns,
  })
  const driver = new TimeDriver(clock, { net })
  const { smtpd, traces, intake, flushed, events, reload } = await startSmtpdOn(net, clock, settings)
  const rest = () => driver.runUntil(clock.now())
  return {
    clock,
    intake,
    flushed,
    events,
    smtpd,
    traces,
    reload,
    net,
    async connect(from = '127.0.0.1', eager, listener = 0) {
      const at = smtpd.listeners[listener]
      if (at === undefined) throw new Error('the server has no listener')
      const client = new RawClient(await net.dialFrom(from, at), rest)
      if (eager !== undefined) client.socket.write(eager)
      await rest()
      return client
    },
    wait: (time) => driver.runUntil(clock.now() + time),
    of: (kind) => events.filter((event) => event.kind === kind) as never,
  }
}
