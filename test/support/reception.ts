/**
 * An SMTP server on a virtual clock with an intake that records what it is given, and clients that talk to it in bytes.
 */
import type { Socket } from 'node:net'
import { defaultConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/options.ts'
import type { Duration } from '../../src/mail/clock.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import type { SmtpReply } from '../../src/mail/reply.ts'
import { seededRandom } from '../../src/mail/random.ts'
import { Acceptor } from '../../src/queue/accept.ts'
import type { Intake } from '../../src/queue/intake.ts'
import { StoreUnavailable } from '../../src/queue/store.ts'
import { startSmtpd, type Smtpd } from '../../src/smtpd/server.ts'
import { Events, type QueueEvent } from '../../src/telemetry/events.ts'
import { Driver } from '../../src/testkit/idle.ts'
import { MemoryNet } from '../../src/testkit/memory-net.ts'
import { VirtualClock } from '../../src/testkit/virtual-clock.ts'

type Entry = Parameters<Intake['take']>[0]

/** A message that was taken, with its content in one piece (`latin1`: one character a byte). */
export interface Taken extends Entry {
  readonly text: string
  /** Without our Received line. */
  readonly original: string
}

/** Records instead of queueing; can be told to be ill. */
export class RecordingIntake {
  readonly taken: Taken[] = []
  readonly staged = new Map<number, Uint8Array[]>()
  readonly unstaged: number[] = []
  ill = false
  /** The reply to MAIL while it takes none. */
  refusing: SmtpReply | undefined
  /** Staged chunks at once, at most. */
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

  async stage(body: number, from: number, chunks: readonly Uint8Array[]): Promise<void> {
    this.#mustBeWell()
    const before = this.staged.get(body) ?? []
    if (before.length !== from) throw new Error(`staged part ${from} after ${before.length}`)
    this.staged.set(body, [...before, ...chunks])
    this.mostHeld = Math.max(this.mostHeld, chunks.length)
  }

  async unstage(body: number): Promise<void> {
    this.unstaged.push(body)
    this.staged.delete(body)
  }

  async take(entry: Entry): Promise<void> {
    this.#mustBeWell()
    const parts = [...(this.staged.get(entry.message.body) ?? []), ...entry.content]
    const text = Buffer.concat(parts).toString('latin1')
    this.taken.push({ ...entry, text, original: text.replace(/^Received: [^\r]*\r\n(?:[ \t][^\r]*\r\n)*/, '') })
  }

  async refusal(): Promise<SmtpReply | undefined> {
    return this.refusing
  }

  #mustBeWell(): void {
    if (this.ill) throw new StoreUnavailable('the disk is full')
  }
}

/** A client that says exactly what it is told to say. */
export class RawClient {
  /** Everything the server said. */
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

  /** Sends the bytes in these pieces, each a packet of its own, and returns what came back. */
  async send(...packets: readonly (string | Buffer)[]): Promise<string> {
    const before = this.heard.length
    for (const packet of packets) {
      if (!this.socket.writable) break
      this.socket.write(typeof packet === 'string' ? Buffer.from(packet, 'latin1') : packet)
      await this.#rest()
    }
    return this.heard.slice(before)
  }

  /** Sends command lines one after the other; the last reply. */
  async say(...lines: readonly string[]): Promise<string> {
    let answer = ''
    for (const line of lines) answer = await this.send(`${line}\r\n`)
    return answer.trimEnd()
  }

  /** EHLO, MAIL, RCPT and DATA, up to 354. */
  async upToData(recipients: readonly string[] = ['ann@far.example']): Promise<string> {
    const rcpts = recipients.map((recipient) => `RCPT TO:<${recipient}>`)
    return this.say('EHLO client.example', 'MAIL FROM:<app@us.example>', ...rcpts, 'DATA')
  }
}

export interface Reception {
  readonly clock: VirtualClock
  readonly intake: RecordingIntake
  readonly events: QueueEvent[]
  readonly smtpd: Smtpd
  /** Connects; `eager` is sent at once, before the greeting can have come. */
  readonly connect: (from?: string, eager?: string) => Promise<RawClient>
  /** Lets everything happen that happens within this time. */
  readonly wait: (time: Duration) => Promise<void>
  readonly of: <K extends QueueEvent['kind']>(kind: K) => Extract<QueueEvent, { kind: K }>[]
}

/** An address that is not in mynetworks. */
export const OUTSIDER = '203.0.113.9'

export async function openReception(settings: Partial<Config> = {}): Promise<Reception> {
  const config: Config = { ...defaultConfig('relay.example').config, ...settings }
  const clock = new VirtualClock()
  const net = new MemoryNet(clock, {
    lookupMx: () => ({ kind: 'none', nxdomain: false }),
    lookupAddresses: () => ({ kind: 'none', nxdomain: false }),
    door: () => ({ kind: 'closed', code: 'ECONNREFUSED' }),
  })
  const driver = new Driver(clock, { net })
  const events = new Events(() => clock.now())
  const seen: QueueEvent[] = []
  events.listen((event) => seen.push(event))
  const intake = new RecordingIntake(() => clock.now())
  const acceptor = new Acceptor({ intake, config, clock, events })
  const smtpd = await startSmtpd({ config, net, clock, random: seededRandom(1), acceptor, events, intake })
  const rest = () => driver.runUntil(clock.now())
  return {
    clock,
    intake,
    events: seen,
    smtpd,
    async connect(from = '127.0.0.1', eager) {
      const at = smtpd.listeners[0]
      if (at === undefined) throw new Error('nobody listens')
      const client = new RawClient(await net.dialFrom(from, at), rest)
      if (eager !== undefined) client.socket.write(eager)
      await rest()
      return client
    },
    wait: (time) => driver.runUntil(clock.now() + time),
    of: (kind) => seen.filter((event) => event.kind === kind) as never,
  }
}
