/** The instances of the contestants: one for each set-up, which runs to the end, and new ones for single turns. */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { SetUp } from './cases.ts'
import { freePort, greeted, type Child } from './child.ts'
import type { Contestant, Place, Site } from './contestants.ts'
import type { Loaded } from './load.ts'

export interface Relay extends Loaded {
  readonly child: Child
  /** Makes all its mail due. */
  readonly flush: () => Promise<void>
}

export interface NewRelay extends Relay, AsyncDisposable {}

export class Field {
  readonly #place: Place
  readonly #running = new Map<string, Relay>()
  #count = 0

  constructor(place: Place) {
    this.#place = place
  }

  /** The running instance, which is started at the first call. */
  async running(contestant: Contestant, setUp: SetUp): Promise<Relay> {
    // Without /metrics, this set-up is the usual one.
    const own = setUp === 'metered' && !contestant.hasMetrics ? 'usual' : setUp
    const key = `${contestant.name}-${own}`
    const found = this.#running.get(key)
    if (found !== undefined) return found
    const relay = await this.#start(contestant, this.#folder(key), own)
    this.#place.undo.defer(() => relay.child.stop())
    this.#running.set(key, relay)
    return relay
  }

  /** A new instance, whose folder `prepare` may fill before it is started. Its end removes the folder. */
  async fresh(contestant: Contestant, setUp: SetUp, prepare: (folder: string) => unknown = () => undefined): Promise<NewRelay> {
    const folder = this.#folder(`${contestant.name}-${++this.#count}`)
    prepare(folder)
    const relay = await this.#start(contestant, folder, setUp)
    const end = async (): Promise<void> => {
      await relay.child.stop()
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    }
    return { ...relay, [Symbol.asyncDispose]: end }
  }

  #folder(name: string): string {
    const folder = join(this.#place.folder, 'instances', name)
    mkdirSync(folder, { recursive: true })
    return folder
  }

  async #start(contestant: Contestant, folder: string, setUp: SetUp): Promise<Relay> {
    const site: Site = { folder, port: await freePort(), metrics: setUp === 'metered' ? await freePort() : null, setUp }
    const child = await contestant.start(site)
    try {
      await greeted(child, site.port, this.#place.signal)
    } catch (error) {
      await child.stop()
      throw error
    }
    return { name: contestant.name, child, port: site.port, metrics: site.metrics, flush: () => contestant.flush(site) }
  }
}
