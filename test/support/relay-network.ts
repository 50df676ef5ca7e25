/** Several real relays on one network in memory and one virtual clock, so that one can deliver mail to the next. */
import { loadTemplates } from '../../src/bounce/templates.ts'
import { configFrom } from '../../src/config/load.ts'
import { Relay } from '../../src/relay/relay.ts'
import type { Endpoint } from '../../src/system/net.ts'
import type { Duration } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { Events, type QueueEvent } from '../../src/telemetry/events.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { MemoryNet } from '../../src/testkit/virtual/memory-net.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import type { WorldConfig } from '../../src/testkit/options/world-options.ts'
import { RawClient } from './smtpd-harness.ts'

type Kind = QueueEvent['kind']
type Heard<K extends Kind> = Extract<QueueEvent, { readonly kind: K }>

export interface PlacedRelay {
  readonly at: Endpoint
  readonly relay: Relay
  readonly heard: <K extends Kind>(kind: K) => readonly Heard<K>[]
}

export class RelayNetwork {
  readonly clock = new VirtualClock()
  readonly #net = new MemoryNet(this.clock, {
    lookupMx: () => ({ kind: 'none', nxdomain: true }),
    lookupAddresses: () => ({ kind: 'none', nxdomain: true }),
    dial: () => ({ kind: 'closed', code: 'ECONNREFUSED' }),
  })
  readonly #driver = new TimeDriver(this.clock, { net: this.#net })

  /** Creates a relay with this name, which listens at port 25 of the address. */
  async open(myhostname: string, address: string, settings: WorldConfig): Promise<PlacedRelay> {
    const at = { address, port: 25 }
    const { config, written } = configFrom({ myhostname, smtpd_listen: [`${address}:25`], ...settings }, myhostname)
    const events = new Events(() => this.clock.now())
    const seen: QueueEvent[] = []
    events.listen((event) => seen.push(event))
    const { templates } = loadTemplates({ config, written })
    const { store } = openMemoryStore()
    const relay = new Relay({ config, templates, clock: this.clock, net: this.#net, store, events, random: seededRandom(1) })
    await relay.listen()
    await relay.start()
    return { at, relay, heard: <K extends Kind>(kind: K) => seen.filter((event): event is Heard<K> => event.kind === kind) }
  }

  async connect({ at }: PlacedRelay): Promise<RawClient> {
    const client = new RawClient(await this.#net.dialFrom('127.0.0.1', at), () => this.#driver.runUntil(this.clock.now()))
    await this.advance(0)
    return client
  }

  advance(time: Duration): Promise<void> {
    return this.#driver.runUntil(this.clock.now() + time)
  }
}
