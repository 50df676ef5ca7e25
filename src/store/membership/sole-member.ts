/**
 * The sole owner of a queue. It owns all destinations, until the queue as a whole is given away: mail then waits in the store, and running
 * deliveries end.
 */
import { SHARDS, type Shard } from './shards.ts'
import type { Membership, MembershipListener } from './membership.ts'

const ALL: readonly Shard[] = Array.from({ length: SHARDS }, (_, shard) => shard)

export class SoleMember implements Membership {
  #listener: MembershipListener | null = null
  #ownsAll = true

  holds(): boolean {
    return true
  }

  owns(): boolean {
    return this.#ownsAll
  }

  attach(listener: MembershipListener): void {
    this.#listener = listener
  }

  /** Resolves when no mail waits in memory. Deliveries that take long may still run. */
  async giveAway(): Promise<void> {
    this.#ownsAll = false
    await this.#listener?.releasing(ALL, () => undefined)
  }

  /** Schedules the mail again. Has no effect while all destinations are owned. */
  async takeBack(): Promise<void> {
    if (this.#ownsAll) return
    this.#ownsAll = true
    await this.#listener?.taken(ALL)
  }
}
