/** The shards whose destinations this node schedules: its own, except while their saved destinations are being loaded. */
import type { DestinationName } from '../../mail/message.ts'
import type { Membership } from '../../store/membership/membership.ts'
import type { Shard } from '../../store/membership/shards.ts'

export class ScheduledShards {
  readonly #membership: Pick<Membership, 'owns' | 'shardOf'>
  readonly #loading = new Set<Shard>()

  constructor(membership: Pick<Membership, 'owns' | 'shardOf'>) {
    this.#membership = membership
  }

  /** True when this node schedules the destination and knows its saved state. */
  schedules(name: DestinationName): boolean {
    return this.#membership.owns(name) && !this.isLoading(name)
  }

  isLoading(name: DestinationName): boolean {
    return this.#loading.size > 0 && this.#loading.has(this.#membership.shardOf(name))
  }

  beginLoading(shards: readonly Shard[]): void {
    for (const shard of shards) this.#loading.add(shard)
  }

  endLoading(shards: readonly Shard[]): void {
    for (const shard of shards) this.#loading.delete(shard)
  }

  /** Tells the destinations of shards from others. */
  among(shards: readonly Shard[]): (name: DestinationName) => boolean {
    const wanted = new Set(shards)
    return (name) => wanted.has(this.#membership.shardOf(name))
  }
}
