/**
 * The membership of a relay whose whole queue can be given away, for the final step of a move. The node keeps its shards, so that it still
 * sends the notices of their messages; their mail waits in the store, and running deliveries end.
 */
import type { DestinationName } from '../../mail/message.ts'
import type { Membership, MembershipListener } from './membership.ts'
import type { Recall, TakenBack } from './taken-back.ts'
import { SHARDS, type Shard } from './shards.ts'

const ALL: readonly Shard[] = Array.from({ length: SHARDS }, (_, shard) => shard)

export class QueueHandover implements Membership {
  readonly #membership: Membership
  #listener: MembershipListener | null = null
  #isGiven = false

  constructor(membership: Membership) {
    this.#membership = membership
  }

  get isShared(): boolean {
    return this.#membership.isShared
  }

  holds(): boolean {
    return this.#membership.holds()
  }

  owns(destination: DestinationName): boolean {
    return !this.#isGiven && this.#membership.owns(destination)
  }

  shardOf(destination: DestinationName): Shard {
    return this.#membership.shardOf(destination)
  }

  hostnames(): readonly string[] {
    return this.#membership.hostnames()
  }

  recall(recall: Recall): Promise<TakenBack> {
    return this.#membership.recall(recall)
  }

  attach(listener: MembershipListener): void {
    this.#listener = listener
    this.#membership.attach(listener)
  }

  /** Resolves when no mail waits in memory. Deliveries that take long may still run. */
  async giveAway(): Promise<void> {
    this.#isGiven = true
    await this.#listener?.releasing(ALL, () => undefined)
  }

  /** Schedules the mail again. Has no effect unless the queue was given away. */
  async takeBack(): Promise<void> {
    if (!this.#isGiven) return
    this.#isGiven = false
    await this.#listener?.taken(ALL)
  }
}
