/** NodeTable over a queue in memory, which several nodes of one process share. */
import type { OwnerId } from '../../src/mail/message.ts'
import type { ProviderDirectory } from '../../src/config/provider-directory.ts'
import type { QueueTime } from '../../src/system/clock.ts'
import type { Recall, TakenBack } from '../../src/store/membership/taken-back.ts'
import {
  NO_ARRIVALS,
  type Arrivals,
  type AskedRecall,
  type NodeParameters,
  type NodesView,
  type NodeState,
  type NodeTable,
  type RecallAnswer,
  type Takeover,
} from '../../src/store/membership/node-table.ts'
import { shardUnder } from '../../src/store/membership/shard-keys.ts'
import { SHARDS, type Shard } from '../../src/store/membership/shards.ts'
import { Fenced, type QueueStore } from '../../src/store/queue-store.ts'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import { openShared } from '../../src/store/memory/memory-store.ts'
import { PROVIDER_MEMBERS } from '../../src/store/records/provider-state.ts'
import type { HeldNode, HeldRecipient, MemoryQueue } from '../../src/store/memory/queue-state.ts'
import { removeOwner } from '../../src/store/memory/recovery.ts'

export interface JoiningNode {
  readonly name: string
  readonly program?: string | undefined
  readonly settings?: string | undefined
  readonly hostname?: string | undefined
  readonly draining?: boolean | undefined
  /** Providers of destinations, which arrivals and own changes refresh. */
  readonly providers?: ProviderDirectory | undefined
  /** Clock of the database. */
  readonly now: () => QueueTime
}

/** Opens a queue as one more node, which owns no shard yet. */
export function joinMemoryQueue(
  queue: MemoryQueue,
  { name, program = '', settings = '', hostname = '', draining = false, providers, now }: JoiningNode,
): { readonly store: QueueStore; readonly reader: QueueReader; readonly nodes: NodeTable } {
  const id = ++queue.openings
  queue.nodes.set(id, { id, name, program, settings, hostname, draining, beat: 0, beatAt: now(), joinedAt: now(), hint: () => undefined })
  const shared = openShared(queue, id, () => providers?.replace(PROVIDER_MEMBERS.all.held(queue.records)))
  return { ...shared, nodes: new MemoryNodeTable(queue, id, { now, providers }) }
}

class MemoryNodeTable implements NodeTable {
  readonly me: OwnerId
  readonly #queue: MemoryQueue
  readonly #now: () => QueueTime
  readonly #providers: ProviderDirectory | undefined

  constructor(queue: MemoryQueue, me: OwnerId, { now, providers }: Pick<JoiningNode, 'now' | 'providers'>) {
    this.me = me
    this.#queue = queue
    this.#now = now
    this.#providers = providers
  }

  async beat(): Promise<NodesView | null> {
    const own = this.#queue.nodes.get(this.me)
    if (own === undefined) return null
    own.beat++
    own.beatAt = this.#now()
    const owned = new Map<OwnerId | null, Shard[]>()
    for (const [shard, owner] of this.#queue.shards.entries()) {
      const shards = owned.get(owner)
      if (shards === undefined) owned.set(owner, [shard])
      else shards.push(shard)
    }
    const nodes = [...this.#queue.nodes.values()].map((node) => this.#stateOf(node, owned.get(node.id)?.length ?? 0))
    return { nodes, freeShards: owned.get(null)?.length ?? 0, mine: owned.get(this.me) ?? [], databaseTime: this.#now() }
  }

  async takeOver(node: OwnerId, seenBeat: number): Promise<Takeover | null> {
    this.#own()
    return this.#queue.nodes.get(node)?.beat === seenBeat ? this.#remove(node) : null
  }

  async takeShards(limit: number): Promise<readonly Shard[]> {
    const { id } = this.#own()
    const taken = this.#shardsOf(null).slice(0, limit)
    for (const shard of taken) this.#queue.shards[shard] = id
    return taken
  }

  async releaseShards(shards: readonly Shard[]): Promise<void> {
    const { id } = this.#own()
    for (const shard of shards) if (this.#queue.shards[shard] === id) this.#queue.shards[shard] = null
  }

  async arrivals(): Promise<Arrivals> {
    const { id } = this.#own()
    this.#providers?.replace(PROVIDER_MEMBERS.all.held(this.#queue.records))
    const isMine = ({ shard }: { readonly shard: Shard }) => this.#queue.shards[shard] === id
    const mine = this.#queue.arrivals.filter(isMine)
    const recalls = this.#queue.recalls.filter(({ node, answer }) => node === id && answer === null)
    if (mine.length === 0 && recalls.length === 0) return NO_ARRIVALS
    this.#queue.arrivals = this.#queue.arrivals.filter((one) => !isMine(one))
    return {
      due: mine.flatMap((one) => (one.kind === 'due' ? [one.of] : [])),
      notices: mine.flatMap((one) => (one.kind === 'notices' ? [one.of] : [])),
      destinations: mine.flatMap((one) => (one.kind === 'destinations' ? [one.of] : [])),
      providers: mine.flatMap((one) => (one.kind === 'providers' ? [one.of] : [])),
      recalls: recalls.map(({ asker, number, recall }) => ({ asker, number, recall })),
    }
  }

  async recall(number: number, recall: Recall): Promise<readonly OwnerId[]> {
    const { id } = this.#own()
    const queue = this.#queue
    const asked = queue.recalls.filter((one) => one.asker === id && one.number === number)
    if (asked.length > 0) return asked.map(({ node }) => node)
    const leasing = recall.messages.flatMap(
      (message) => queue.messages.get(message)?.recipients.flatMap(({ leasedBy }) => leasedBy ?? []) ?? [],
    )
    const owning = recall.destination === null ? [] : queue.shards.flatMap((owner) => owner ?? [])
    const nodes = [...new Set([...leasing, ...owning])].filter((node) => node !== id && queue.nodes.has(node))
    queue.recalls = [...queue.recalls, ...nodes.map((node) => ({ asker: id, number, node, recall, answer: null }))]
    for (const node of nodes) void Promise.resolve().then(() => queue.nodes.get(node)?.hint(true))
    return nodes
  }

  async recallAnswers(number: number, asked: readonly OwnerId[]): Promise<readonly RecallAnswer[]> {
    const { id } = this.#own()
    const own = this.#queue.recalls.filter((one) => one.asker === id && one.number === number)
    return asked
      .filter((node) => this.#queue.nodes.has(node))
      .map((node) => ({ node, answer: own.find((one) => one.node === node)?.answer ?? null }))
  }

  async endRecall(number: number): Promise<void> {
    this.#queue.recalls = this.#queue.recalls.filter((one) => one.asker !== this.me || one.number !== number)
  }

  async answerRecall({ asker, number }: Pick<AskedRecall, 'asker' | 'number'>, answer: TakenBack): Promise<void> {
    const { id } = this.#own()
    for (const one of this.#queue.recalls) if (one.node === id && one.asker === asker && one.number === number) one.answer = answer
  }

  onHint(listener: (ofNode: boolean) => void): void {
    const own = this.#queue.nodes.get(this.me)
    if (own !== undefined) own.hint = listener
  }

  async setDraining(node: OwnerId, draining: boolean): Promise<boolean> {
    this.#own()
    const found = this.#queue.nodes.get(node)
    if (found !== undefined) {
      found.draining = draining
      void Promise.resolve().then(() => found.hint(true))
    }
    return found !== undefined
  }

  async setParameters(parameters: NodeParameters): Promise<void> {
    Object.assign(this.#own(), parameters)
  }

  async leave(): Promise<void> {
    this.#remove(this.me)
  }

  /** The row of this node, which fences all its transactions. */
  #own(): HeldNode {
    const own = this.#queue.nodes.get(this.me)
    if (own === undefined) throw new Fenced(`node ${this.me} was taken over`)
    return own
  }

  #stateOf(held: HeldNode, shards: number): NodeState {
    const { hint: _, beatAt, ...node } = held
    return { ...node, beatAge: this.#now() - beatAt, shards }
  }

  #remove(node: OwnerId): Takeover {
    const [shards, leased] = [this.#shardsOf(node), this.#leasedBy(node)]
    const { quarantined } = removeOwner(this.#queue, node)
    for (const shard of shards) this.#queue.shards[shard] = null
    this.#queue.nodes.delete(node)
    this.#queue.recalls = this.#queue.recalls.filter((one) => one.asker !== node && one.node !== node)
    for (const one of leased) this.#tellOwner(one)
    return { shards: shards.length, leases: leased.length, corrupt: quarantined.map(({ queueId }) => queueId) }
  }

  #shardsOf(owner: OwnerId | null): readonly Shard[] {
    return Array.from({ length: SHARDS }, (_, shard) => shard).filter((shard) => this.#queue.shards[shard] === owner)
  }

  #leasedBy(owner: OwnerId): readonly HeldRecipient[] {
    const all = [...this.#queue.messages.values()].flatMap(({ recipients }) => recipients)
    return all.filter(({ leasedBy }) => leasedBy === owner)
  }

  /** Tells the owner of the shard of a waiting recipient. One without an owner is read anew by the node that takes it. */
  #tellOwner({ state, destination, dueAt }: HeldRecipient): void {
    const shard = shardUnder(destination, PROVIDER_MEMBERS.providerOf.held(this.#queue.records, destination))
    const owner = this.#queue.shards[shard] ?? null
    if (state !== 'waiting' || owner === null) return
    this.#queue.arrivals = [...this.#queue.arrivals, { shard, kind: 'due', of: { destination, dueAt, revive: false } }]
    this.#queue.nodes.get(owner)?.hint(false)
  }
}
