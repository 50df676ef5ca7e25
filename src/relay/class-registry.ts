/**
 * Numbers of classes (ClassBands): adds those of the configuration to the store, and learns those that other nodes add, whose mail at the
 * destinations of this node would wait otherwise.
 */
import type { ClassBands } from '../config/values/mail-classes.ts'
import { rethrowUnlessUnavailable, type QueueStore } from '../store/queue-store.ts'
import { seconds, type Clock, type Duration } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'

interface ClassRegistryDeps {
  readonly store: { readonly records: Pick<QueueStore['records'], 'classBands'> }
  readonly clock: Clock
  readonly bands: ClassBands
  /** True for a queue of several nodes. */
  readonly isShared: boolean
  /** Schedules the waiting mail of classes that another node has added. */
  readonly added: () => Promise<void>
}

const REFRESH: Duration = seconds(10)

export class ClassRegistry {
  readonly #deps: ClassRegistryDeps
  #isLoaded = false
  #refreshing: PeriodicTask | null = null

  constructor(deps: ClassRegistryDeps) {
    this.#deps = deps
  }

  /** Gives each class a number, before mail of the class is accepted. Rejects with StoreUnavailable. */
  async apply(names: Iterable<string>): Promise<void> {
    const { bands, clock, isShared } = this.#deps
    const classes = [...names]
    if (!this.#isLoaded) await this.#load()
    for (const name of classes) while (!bands.has(name)) await this.#add(name)
    if (isShared) this.#refreshing ??= every(clock, REFRESH, () => this.#refresh(), { failed: rethrowUnlessUnavailable })
  }

  async stop(): Promise<void> {
    await this.#refreshing?.stop()
    this.#refreshing = null
  }

  /** Another node may take the same number, or add the class, meanwhile. */
  async #add(name: string): Promise<void> {
    const { store, bands } = this.#deps
    await store.records.classBands.add({ name, band: Math.max(...bands.all) + 1 })
    await this.#load()
  }

  async #load(): Promise<void> {
    this.#deps.bands.replace(await this.#deps.store.records.classBands.all())
    this.#isLoaded = true
  }

  async #refresh(): Promise<void> {
    const { bands, added } = this.#deps
    const before = bands.all.length
    await this.#load()
    if (bands.all.length > before) await added()
  }
}
