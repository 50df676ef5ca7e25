/** An owner of a queue in memory: its destinations and mail, and the messages that it leaves for other owners. A sole owner has all destinations. */
import type { DestinationName, MessageId, OwnerId } from '../../mail/message.ts'
import { nameOfProvider } from '../../config/provider-directory.ts'
import type { DueArrival } from '../membership/node-table.ts'
import { shardUnder } from '../membership/shard-keys.ts'
import type { Shard } from '../membership/shards.ts'
import { PROVIDER_MEMBERS, type ProviderChange } from '../records/provider-state.ts'
import { isRecordedClosed } from '../destination-status.ts'
import type { DestinationRecord } from '../queue-store.ts'
import type { RecipientsElsewhere } from '../recorded-outcomes.ts'
import { isLive } from '../../mail/message.ts'
import type { Arrival, HeldMessage, HeldRecipient, MemoryQueue } from './queue-state.ts'

export class QueueOwner {
  readonly id: OwnerId
  /** Called after a change of the provider of a destination. */
  readonly joined: () => void
  readonly #queue: MemoryQueue
  readonly #isSole: boolean

  constructor(queue: MemoryQueue, id: OwnerId, sharing: 'sole' | 'shared', joined: () => void = () => undefined) {
    this.joined = joined
    this.id = id
    this.#queue = queue
    this.#isSole = sharing === 'sole'
  }

  /** True when the queue was taken from this owner: every call then fails. */
  get isFenced(): boolean {
    return !this.#queue.nodes.has(this.id)
  }

  /** Number under which this owner configures subscriptions. That of a sole owner, whose own one changes with each start, is 0. */
  get configuring(): OwnerId {
    return this.#isSole ? 0 : this.id
  }

  owns(destination: DestinationName): boolean {
    return this.ownsShard(this.shardOf(destination))
  }

  shardOf(destination: DestinationName): Shard {
    return shardUnder(destination, PROVIDER_MEMBERS.providerOf.held(this.#queue.records, destination))
  }

  ownsShard(shard: Shard): boolean {
    return this.#isSole || this.#queue.shards[shard] === this.id
  }

  /** True when this owner sends the notices about the message. */
  isHome({ home }: HeldMessage): boolean {
    return this.#isSole || this.#queue.shards[home] === this.id
  }

  leases({ leasedBy }: HeldRecipient): boolean {
    return leasedBy === this.id
  }

  /** Recipients of a message that other owners schedule; undefined for none. */
  elsewhere({ recipients }: HeldMessage): RecipientsElsewhere | undefined {
    const others = recipients.filter((one) => isLive(one) && !this.owns(one.destination))
    if (others.length === 0) return undefined
    const names = new Set(others.map(({ destination }) => destination))
    return {
      leased: others.some((one) => one.state === 'leased' && !this.leases(one)),
      closed: [...names].filter((name) => isRecordedClosed(this.#queue.destinations.get(name))).toSorted(),
    }
  }

  // --- messages to other owners

  due(arrival: DueArrival): void {
    if (!this.owns(arrival.destination)) this.#send({ shard: this.shardOf(arrival.destination), kind: 'due', of: arrival })
  }

  notice(held: HeldMessage): void {
    if (!this.isHome(held)) this.#send({ shard: held.home, kind: 'notices', of: held.message.id satisfies MessageId })
  }

  destination(record: DestinationRecord): void {
    if (!this.owns(record.name)) this.#send({ shard: this.shardOf(record.name), kind: 'destinations', of: record })
  }

  provider(record: ProviderChange): void {
    const name = nameOfProvider(record.provider)
    if (!this.owns(name)) this.#send({ shard: this.shardOf(name), kind: 'providers', of: record })
  }

  #send(arrival: Arrival): void {
    this.#queue.arrivals = [...this.#queue.arrivals, arrival]
    const owner = this.#queue.shards[arrival.shard]
    // The owner reads after the end of this transaction.
    if (owner !== null && owner !== undefined) void Promise.resolve().then(() => this.#queue.nodes.get(owner)?.hint(false))
  }
}
