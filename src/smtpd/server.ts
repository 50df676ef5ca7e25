/** The SMTP server: listens through the Net port and gives every client a connection of its own. */
import type { Config } from '../config/options.ts'
import type { Endpoint, Listener, Net } from '../delivery/net.ts'
import type { Clock, Duration } from '../mail/clock.ts'
import type { Random } from '../mail/random.ts'
import type { Acceptor } from '../queue/accept.ts'
import type { Intake } from '../queue/intake.ts'
import type { Events } from '../telemetry/events.ts'
import { ClientLimits } from './client-limits.ts'
import type { House } from './connection.ts'
import { parseListen } from '../config/endpoints.ts'
import { Guests } from './guests.ts'
import { blocksOf, readCertificate } from './listeners.ts'
import { Networks } from '../config/networks.ts'
import { peerName } from './peer-name.ts'
import { Reception } from './reception.ts'
import { RelayAccess } from './relay-access.ts'
import { Users } from './users.ts'

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
  /** Clients that connect from now on meet the new settings; listeners and certificates stay. */
  reload(changed: Pick<SmtpdParts, 'config' | 'acceptor'>): void
  /** Takes no more mail: messages on their way in get `grace` to arrive and be answered. */
  close(grace: Duration): Promise<void>
}

/** Rejects with the system's error when a port cannot be opened or a certificate cannot be read; then nothing listens. */
export async function startSmtpd(parts: SmtpdParts): Promise<Smtpd> {
  const { config, net, clock } = parts
  const guests = new Guests()
  let house = houseOf(parts, guests)
  const certificate = await readCertificate(config)
  const users = config.smtpd_sasl_users_file === '' ? null : new Users(config.smtpd_sasl_users_file)
  const listeners: Listener[] = []
  try {
    for (const block of blocksOf(config)) {
      const server = new Reception({ house: () => house, guests, rules: block, certificate, users })
      listeners.push(await net.listen(parseListen(block.address, 'smtpd_listen'), (socket) => server.connect(socket)))
    }
  } catch (error) {
    await Promise.all(listeners.map((listener) => listener.close()))
    throw error
  }
  return {
    listeners,
    reload: (changed) => {
      house = houseOf({ ...parts, ...changed }, guests)
    },
    close: async (grace) => {
      await Promise.all(listeners.map((listener) => listener.close()))
      await guests.drain(grace, clock)
    },
  }
}

function houseOf({ config, net, clock, acceptor, events, intake }: SmtpdParts, guests: Guests): House {
  const limits = new ClientLimits(config, clock)
  return {
    settings: config,
    clock,
    acceptor,
    desk: { settings: config, access: new RelayAccess(config), events, limits, refusal: (size) => intake.refusal(size) },
    nameOf: config.smtpd_peername_lookup ? (address) => peerName(address, net, clock) : undefined,
    bareNewlineExclusions: new Networks(config.smtpd_forbid_bare_newline_exclusions, 'smtpd_forbid_bare_newline_exclusions'),
    hasRoom: () => guests.haveRoom(config.smtpd_process_limit, clock.monotonic()),
    gone: (connection) => guests.delete(connection),
  }
}
