/**
 * A node among those that share a queue. It sends beats, takes over silent nodes, takes its share of the shards, gives the others
 * away, and passes the messages of other nodes to its relay. The decisions are in node-lease, node-observations and shard-balance.
 */
import type { DestinationName, OwnerId } from '../../mail/message.ts'
import { SECOND, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import { TaskSet } from '../../system/task-set.ts'
import { Fenced, rethrowUnlessUnavailable } from '../queue-store.ts'
import type { Membership, MembershipListener } from './membership.ts'
import { NOTHING_TAKEN, type Recall, type TakenBack } from './taken-back.ts'
import { holdsAt, leaseTimes, momentOf, type LeaseTimes, type Moment } from './node-lease.ts'
import { NO_OBSERVATIONS, nextSilence, observed, silentNodes, type Observations } from './node-observations.ts'
import type { NodeParameters, NodesView, NodeState, NodeTable, Takeover } from './node-table.ts'
import { Recalls } from './recalls.ts'
import { balance } from './shard-balance.ts'
import type { ShardKeys } from './shard-keys.ts'
import type { Shard } from './shards.ts'

/** Difference of the clocks of this node and of the database from which no delivery begins. */
const CLOCKS_APART: Duration = 30 * SECOND

export type MembershipEvent =
  | { readonly kind: 'shards-taken'; readonly shards: readonly Shard[] }
  | { readonly kind: 'shards-released'; readonly shards: readonly Shard[] }
  /** Another node was taken over. */
  | { readonly kind: 'node-taken-over'; readonly node: OwnerId; readonly name: string; readonly takeover: Takeover }
  /** This node was taken over. It must end, and may join again as another node. */
  | { readonly kind: 'fenced' }

interface MemberDeps {
  readonly nodes: NodeTable
  readonly clock: Clock
  readonly keys: Pick<ShardKeys, 'shardOf'>
  /** Parameter `node_lease`. */
  readonly lease: Duration
  readonly onEvent: (event: MembershipEvent) => void
}

export class Member implements Membership {
  readonly isShared = true
  readonly #deps: MemberDeps
  readonly #times: LeaseTimes
  /** Shards whose destinations this node schedules. */
  readonly #held = new Set<Shard>()
  /** Shards that this node owns in the database, and no longer schedules. */
  readonly #leaving = new Set<Shard>()
  /** Those of `#leaving` whose mail was given back. */
  readonly #given = new Set<Shard>()
  readonly #takingOver = new Set<OwnerId>()
  readonly #tasks = new TaskSet((error) => this.#failed(error))
  readonly #recalls: Recalls
  #listener: MembershipListener | null = null
  #observations: Observations = NO_OBSERVATIONS
  #view: NodesView | null = null
  /** Parameters since the last reload; null before the first. */
  #parameters: NodeParameters | null = null
  #lastBeat: Moment | null = null
  #clocksApart: Duration = 0
  /** True when `holds` has returned false since the relay was told to resume. */
  #restedSince = false
  #beats: PeriodicTask | null = null
  /** Requests for arrivals. */
  #polls: PeriodicTask | null = null
  /** True when the last request for arrivals had no answer. */
  #missed = false
  #state: 'new' | 'member' | 'over' = 'new'

  constructor(deps: MemberDeps) {
    this.#deps = deps
    this.#times = leaseTimes(deps.lease)
    const nameOf = (node: OwnerId): string => this.#view?.nodes.find(({ id }) => id === node)?.name ?? `node ${node}`
    this.#recalls = new Recalls({ ...deps, tasks: this.#tasks, nameOf })
  }

  // --- Membership

  holds(): boolean {
    const isCurrent = this.#state === 'member' && Math.abs(this.#clocksApart) < CLOCKS_APART
    const holds = isCurrent && holdsAt(momentOf(this.#deps.clock), this.#lastBeat, this.#times)
    if (!holds) this.#restedSince = true
    return holds
  }

  owns(destination: DestinationName): boolean {
    return this.#held.has(this.shardOf(destination))
  }

  shardOf(destination: DestinationName): Shard {
    return this.#deps.keys.shardOf(destination)
  }

  hostnames(): readonly string[] {
    return (this.#view?.nodes ?? []).map(({ hostname }) => hostname).filter((one) => one !== '')
  }

  recall(recall: Recall): Promise<TakenBack> {
    return this.#recalls.ask(recall)
  }

  attach(listener: MembershipListener): void {
    this.#listener = listener
  }

  // --- the node

  /** The nodes at the last beat; null before the first. */
  get view(): NodesView | null {
    return this.#view
  }

  /**
   * The nodes that this one has seen without a new beat for a lease. None directly after an outage of the database, when all beats are old: the
   * answer is that of takeovers.
   */
  get silent(): readonly OwnerId[] {
    return silentNodes(this.#observations, this.#deps.lease).map(({ id }) => id)
  }

  /** Time of this node minus the time of the database at the last beat. At 30 s or more, no delivery begins. */
  get clocksApart(): Duration {
    return this.#clocksApart
  }

  /** True from the first beat after `drain`, or after `deferd node drain`, on. */
  get isDraining(): boolean {
    return this.#own?.draining === true
  }

  get #own(): NodeState | undefined {
    return this.#view?.nodes.find(({ id }) => id === this.#deps.nodes.me)
  }

  /** Shows other parameters to the other nodes, as in NodeState, from the next beat on that the database answers. */
  describe(parameters: NodeParameters): void {
    this.#parameters = parameters
    this.#beats?.wake()
  }

  /** Gives all shards away while deliveries still run, so that the other mail of this node has an owner before the node leaves. */
  drain(): void {
    const draining = async (): Promise<void> => {
      await this.#deps.nodes.setDraining(this.#deps.nodes.me, true)
      this.#beats?.wake()
    }
    if (this.#state === 'member') this.#tasks.add(draining())
  }

  /** Begins to beat and to take shards, after the relay has started. Resolves when the first beat is answered, or has failed. */
  start(): Promise<void> {
    this.#state = 'member'
    const { nodes, clock, lease } = this.#deps
    const { beat, poll } = this.#times
    nodes.onHint((ofNode) => {
      this.#polls?.wake()
      if (ofNode) this.#beats?.wake()
    })
    const options = { immediate: true, failed: (error: unknown) => this.#failed(error) }
    // The look at which a silent node is taken over does not wait for the next regular beat.
    const silence = (): Duration => nextSilence(this.#observations, lease, clock.monotonic()) - clock.monotonic()
    this.#beats = every(
      clock,
      (took) => Math.max(0, Math.min(beat - took, silence())),
      () => this.#beat(),
      options,
    )
    this.#polls = every(clock, poll, () => this.#takeArrivals(), options)
    return this.#beats.settled()
  }

  /** Ends the membership without a word. Other nodes take this one over. */
  stop(): void {
    this.#state = 'over'
    void this.#beats?.stop()
    void this.#polls?.stop()
    this.#held.clear()
  }

  /**
   * Leaves the queue, after the relay has stopped and its mail was given back. Other nodes take the shards at their next beat. Rejects
   * with StoreUnavailable when the database cannot be reached; then this node is taken over.
   */
  async leave(): Promise<void> {
    this.stop()
    await Promise.all([this.#beats?.settled(), this.#polls?.settled()])
    await this.#tasks.settled()
    await this.#deps.nodes.leave()
  }

  // --- beats

  async #beat(): Promise<void> {
    const { nodes, clock, lease } = this.#deps
    const sent = momentOf(clock)
    const sentAt = clock.now()
    const view = await nodes.beat()
    if (this.#state !== 'member') return
    if (view === null) return this.#fenced()
    this.#lastBeat = sent
    this.#clocksApart = (sentAt + clock.now()) / 2 - view.databaseTime
    this.#view = view
    this.#observations = observed(this.#observations, view.nodes, { me: nodes.me, at: clock.monotonic(), lease })
    this.#resume()
    for (const { id, beat } of silentNodes(this.#observations, lease)) this.#takeOver(id, beat)
    this.#compare(view.mine)
    await this.#tell()
    await this.#divide(view)
  }

  /** Tells the database other parameters than it has. */
  async #tell(): Promise<void> {
    const [told, own] = [this.#parameters, this.#own]
    if (told === null || (told.settings === own?.settings && told.hostname === own.hostname)) return
    await this.#deps.nodes.setParameters(told)
  }

  #resume(): void {
    if (!this.#restedSince || !this.holds()) return
    this.#restedSince = false
    this.#listener?.resumed()
  }

  /** Takes over a silent node, beside the beats, because its open transactions may have to end first. */
  #takeOver(node: OwnerId, beat: number): void {
    if (this.#takingOver.has(node)) return
    this.#takingOver.add(node)
    const name = this.#view?.nodes.find(({ id }) => id === node)?.name ?? ''
    const takingOver = async () => {
      const takeover = await this.#deps.nodes.takeOver(node, beat)
      if (takeover === null) return
      this.#deps.onEvent({ kind: 'node-taken-over', node, name, takeover })
      this.#beats?.wake()
    }
    this.#tasks.add(takingOver().finally(() => this.#takingOver.delete(node)))
  }

  // --- shards

  /** Compares the own shards in the database with those in memory: the answer to an earlier call may have been lost. */
  #compare(mine: readonly Shard[]): void {
    const owned = new Set(mine)
    this.#took(mine.filter((shard) => !this.#held.has(shard) && !this.#leaving.has(shard)))
    const lost = [...this.#held].filter((shard) => !owned.has(shard))
    if (lost.length > 0) this.#letGo(lost)
  }

  async #divide(view: NodesView): Promise<void> {
    const { nodes } = this.#deps
    const { take, letGo } = balance(view, nodes.me, this.#held)
    if (letGo.length > 0) this.#letGo(letGo)
    if (take > 0) this.#took(await nodes.takeShards(take))
    const given = [...this.#given]
    if (given.length === 0) return
    await nodes.releaseShards(given)
    for (const shard of given) {
      this.#given.delete(shard)
      this.#leaving.delete(shard)
    }
    this.#deps.onEvent({ kind: 'shards-released', shards: given })
  }

  #took(shards: readonly Shard[]): void {
    if (shards.length === 0 || this.#state !== 'member') return
    for (const shard of shards) this.#held.add(shard)
    this.#deps.onEvent({ kind: 'shards-taken', shards })
    if (this.#listener !== null) this.#tasks.add(this.#listener.taken(shards))
  }

  /** Ends the scheduling of shards. Each is released at the beat after its mail was given back; a draining node beats at once for that. */
  #letGo(shards: readonly Shard[]): void {
    for (const shard of shards) {
      this.#held.delete(shard)
      this.#leaving.add(shard)
    }
    const given = (shard: Shard): void => {
      this.#given.add(shard)
      if (this.isDraining) this.#beats?.wake()
    }
    if (this.#listener === null) shards.forEach(given)
    else this.#tasks.add(this.#listener.releasing(shards, given))
  }

  // --- arrivals

  async #takeArrivals(): Promise<void> {
    const missed = this.#missed
    // An answer that is lost takes its arrivals with it.
    this.#missed = true
    const arrivals = await this.#deps.nodes.arrivals()
    this.#missed = false
    if (this.#state !== 'member') return
    this.#listener?.arrived(arrivals)
    this.#recalls.answer(arrivals.recalls, (recall) => this.#listener?.recalled(recall) ?? Promise.resolve(NOTHING_TAKEN))
    if (!missed) return
    // The database is back. Mail is refused until a beat shows that this node was not taken over.
    if (!this.holds()) this.#beats?.wake()
    this.#listener?.missed()
  }

  // --- failures

  #fenced(): void {
    if (this.#state === 'over') return
    this.stop()
    this.#deps.onEvent({ kind: 'fenced' })
  }

  /** Ignores that the database cannot be reached: the next beat tries again. Rethrows a bug. */
  #failed(error: unknown): void {
    if (error instanceof Fenced) return this.#fenced()
    rethrowUnlessUnavailable(error)
  }
}
