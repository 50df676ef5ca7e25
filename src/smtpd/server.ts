/**
 * The SMTP server: listens through the Net port and gives every client a connection of its own. With
 * connection.ts and wire-reader.ts it is all that knows of the smtp-server library.
 */
import type { Socket } from 'node:net'
import { SMTPServer } from 'smtp-server'
import type { Config } from '../config/options.ts'
import type { Endpoint, Listener, Net } from '../delivery/net.ts'
import type { Clock, Duration } from '../mail/clock.ts'
import type { Random } from '../mail/random.ts'
import type { Acceptor } from '../queue/accept.ts'
import type { Intake } from '../queue/intake.ts'
import type { Events } from '../telemetry/events.ts'
import { ClientLimits } from './client-limits.ts'
import { Connection, type House } from './connection.ts'
import { parseListen } from './endpoints.ts'
import { Networks } from './networks.ts'
import { RelayAccess } from './relay-access.ts'

export interface SmtpdParts {
  readonly config: Config
  readonly net: Net
  readonly clock: Clock
  readonly random: Random
  readonly acceptor: Acceptor
  readonly events: Events
  readonly intake: Pick<Intake, 'refusal'>
}

export interface Smtpd {
  /** Where it listens, in the order of smtpd_listen. */
  readonly listeners: readonly Endpoint[]
  /** Takes no more mail: messages on their way in get `grace` to arrive and be answered. */
  close(grace: Duration): Promise<void>
}

/** Rejects with the system's error when a port cannot be opened; then nothing listens. */
export async function startSmtpd(parts: SmtpdParts): Promise<Smtpd> {
  const { config, net } = parts
  const guests = new Guests()
  const server = new Reception(houseOf(parts, guests), guests)
  const listeners: Listener[] = []
  try {
    for (const text of config.smtpd_listen) {
      listeners.push(await net.listen(parseListen(text, 'smtpd_listen'), (socket) => server.connect(socket)))
    }
  } catch (error) {
    await Promise.all(listeners.map((listener) => listener.close()))
    throw error
  }
  return {
    listeners,
    close: async (grace) => {
      await Promise.all(listeners.map((listener) => listener.close()))
      await guests.drain(grace, parts.clock)
    },
  }
}

/** The library's server without its own listener: it is given sockets. */
class Reception extends SMTPServer {
  readonly #house: House
  readonly #guests: Guests
  #count = 0

  constructor(house: House, guests: Guests) {
    super({
      name: house.settings.myhostname,
      logger: false,
      hideENHANCEDSTATUSCODES: false,
      disableReverseLookup: true,
      disabledCommands: ['STARTTLS', 'AUTH'],
    })
    this.#house = house
    this.#guests = guests
    this.on('error', (error) => house.desk.events.emit({ kind: 'note', level: 'error', text: `smtpd: ${error.message}` }))
  }

  override connect(socket: Socket): void {
    const connection = new Connection(this, socket, this.#house, String(++this.#count))
    this.#guests.add(connection)
    connection.init()
  }
}

function houseOf({ config, clock, acceptor, events, intake }: SmtpdParts, guests: Guests): House {
  return {
    settings: config,
    clock,
    acceptor,
    desk: { settings: config, access: new RelayAccess(config), events, refusal: (size) => intake.refusal(size) },
    limits: new ClientLimits(config),
    bareNewlineExclusions: new Networks(config.smtpd_forbid_bare_newline_exclusions, 'smtpd_forbid_bare_newline_exclusions'),
    gone: (connection) => guests.delete(connection),
  }
}

/** The connections that are open. */
class Guests {
  readonly #open = new Set<Connection>()
  #emptied: (() => void) | undefined

  add(connection: Connection): void {
    this.#open.add(connection)
  }

  delete(connection: Connection): void {
    this.#open.delete(connection)
    if (this.#open.size === 0) this.#emptied?.()
  }

  /** Shows everybody out; resolves when all have gone, at the latest after `grace`, when the rest are cut off. */
  drain(grace: Duration, clock: Clock): Promise<void> {
    return new Promise((resolve) => {
      const timer = clock.after(grace, () => {
        for (const connection of this.#open) connection.cut()
        resolve()
      })
      this.#emptied = () => {
        timer.cancel()
        resolve()
      }
      for (const connection of this.#open) connection.drain()
      if (this.#open.size === 0) this.#emptied()
    })
  }
}
