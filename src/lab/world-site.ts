/** The admin API and the page of a relay over a world. Times are of the world; timers of streams and limits follow real time. */
import { AccessEntries } from '../access/access-entries.ts'
import { queueApi, type ApiParts } from '../daemon/queue-api.ts'
import type { Api } from '../api/api.ts'
import type { Listener } from '../http/route-listener.ts'
import type { Route } from '../http/route-table.ts'
import { Page } from '../page/web-page.ts'
import type { Relay } from '../relay/relay.ts'
import { SubscriptionChanges } from '../subscriptions/subscription-changes.ts'
import type { Clock, Duration, MachineClock } from '../system/clock.ts'
import type { World } from '../testkit/world.ts'
import { timeRoute, type TimeControls } from './time-route.ts'

/** Real time after which an event that was made has been stored. */
const STORED_AFTER: Duration = 10

export class WorldSite {
  readonly #world: World
  readonly #clock: Clock
  readonly #real: MachineClock
  readonly #listeners = new Set<() => void>()
  readonly api: Api
  readonly page: Page
  readonly routes: readonly Route[]
  #parts: ApiParts | null = null
  #watched: Relay | null = null
  /** Answers requests to the routes. */
  listener: Listener | null = null

  constructor(world: World, real: MachineClock, controls: TimeControls) {
    this.#world = world
    this.#real = real
    this.#clock = {
      now: () => world.lives.life.clock.now(),
      get wall() {
        return world.lives.life.clock.wall
      },
      zone: (at) => world.clock.zone(at),
      monotonic: () => real.monotonic(),
      after: (delay, action) => real.after(delay, action),
      alarm: (at, action) => real.after(Math.max(0, at - world.lives.life.clock.now()), action),
    }
    const parts = (): ApiParts | null => this.#open()
    this.api = queueApi({ clock: this.#clock, loaded: () => world.loaded, addresses: world.lives.addresses, parts })
    const { view, now, causes, senders } = this.api
    this.page = new Page({ view, now, causes, senders, virtualTime: () => controls })
    this.routes = [...this.api.routes, ...this.page.routes, timeRoute(controls)]
  }

  /** The parts of the relay that runs; null while it is down. */
  #open(): ApiParts | null {
    const { relay, lives, store, reader } = this.#world
    if (!this.#world.isUp) return null
    if (this.#parts?.relay === relay) return this.#parts
    const { clock } = lives.life
    const accessEntries = new AccessEntries({ store, reader, clock })
    const subscriptions = new SubscriptionChanges({ store, reader, clock, changed: () => relay.recorder.refresh(store.outbox) })
    const outbox = { onPublished: (listener: (isChange: boolean) => void) => this.#listen(relay, () => listener(false)) }
    this.#parts = {
      relay,
      store,
      reader,
      node: null,
      services: { operations: lives.operations(), subscriptions, sender: null, schedules: null, domainChecks: null },
      accessEntries,
      outbox,
    }
    return this.#parts
  }

  #listen(relay: Relay, listener: () => void): () => void {
    if (this.#watched !== relay) {
      this.#watched = relay
      relay.recorder.onRecorded(() => void this.#real.after(STORED_AFTER, () => this.#tell()))
    }
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }

  /** Ends the ticks of the streams. */
  close(): void {
    this.api.close()
  }
}
