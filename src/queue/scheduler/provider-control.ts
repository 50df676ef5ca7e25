/**
 * Changes of providers: which destinations belong to them, which reply rules apply, and suspensions by operators. All are committed, so that
 * they survive a restart. Effects of rules end at their time, at the latest at the next start after it, and with their rules; a suspension by an
 * operator ends at its time, and with the table of its provider.
 */
import type { GiveBack } from './give-back.ts'
import { nameOfProvider } from '../../config/provider-directory.ts'
import { actionText } from '../../config/values/tables/provider-table.ts'
import type { AttemptResult } from '../../delivery/delivery-agent.ts'
import type { DestinationName } from '../../mail/message.ts'
import type { Published } from '../../outbox/event-data.ts'
import { ruleLabel, withoutSuspensions, type ProviderChange, type RuleEffect } from '../../store/records/provider-state.ts'
import { isKnownAs, type Suspension } from '../../store/records/suspension.ts'
import { MINUTE, SECOND, type Duration, type QueueTime } from '../../system/clock.ts'
import { formatDuration } from '../../system/duration.ts'
import { EarliestAlarm } from '../../system/earliest-alarm.ts'
import type { Destination } from './destination.ts'
import { ANOTHER_NODE, SUSPENSION_ENDED } from './destination-control.ts'
import { providerSuspended, recordEvent } from './providers/provider-orders.ts'
import type { RunningDelivery } from './destination-table.ts'
import type { DueQueue } from './due-queue.ts'
import type { Provider } from './provider.ts'
import { ReplyRules } from './providers/reply-rules.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'
import type { ShardTransfer } from './shard-transfer.ts'

type State = Pick<
  SchedulerState,
  'store' | 'clock' | 'events' | 'recorder' | 'storeHealth' | 'directory' | 'fillsDirectory' | 'table' | 'shards' | 'tasks'
>
interface Loops {
  readonly due: DueQueue
  readonly giveBack: GiveBack
  readonly transfer: ShardTransfer
  readonly scheduler: Pick<SchedulerLoop, 'dispatch'>
}

/** Minimum time between two changes of the provider of a destination, whose MX records may have different answers in turn. */
const SETTLED: Duration = MINUTE
/** Number of changes above which old ones are forgotten. */
const CHANGES_KEPT = 1_000

export class ProviderControl {
  readonly #state: State
  readonly #loops: Loops
  readonly #rules = new Map<Provider, ReplyRules>()
  /** Times of the last changes, on the monotonic clock. */
  readonly #changedAt = new Map<DestinationName, Duration>()
  /** Destinations whose provider is being changed. */
  readonly #changing = new Set<DestinationName>()
  /** Number of saves in progress, by provider. */
  readonly #saves = new Map<Provider, number>()
  /** Fires at the earliest end of an effect. */
  readonly #ends: EarliestAlarm

  constructor(state: State, loops: Loops) {
    this.#state = state
    this.#loops = loops
    this.#ends = new EarliestAlarm(state.clock, () => this.refresh())
  }

  /**
   * Loads what was saved before the restart, or by the last owner, for the providers whose names are `wanted`. The caller ends what is over
   * (`refresh`) when this node schedules them.
   */
  async recall(wanted: (name: DestinationName) => boolean = () => true): Promise<void> {
    const { store, directory, fillsDirectory, table } = this.#state
    if (fillsDirectory) directory.replace(await store.records.providerMembers.all())
    const { effects, orders } = await this.#readSaved()
    for (const name of new Set([...effects.keys(), ...orders.keys(), ...Array.from(table.providers, (one) => one.name)]))
      if (wanted(nameOfProvider(name))) table.provider(name).apply(effects.get(name) ?? [], orders.get(name) ?? null)
  }

  async #readSaved(): Promise<{
    readonly effects: ReadonlyMap<string, readonly RuleEffect[]>
    readonly orders: ReadonlyMap<string, Suspension>
  }> {
    const { providers } = this.#state.store.records
    const [effects, orders] = [await providers.all(), await providers.suspensions()]
    return {
      effects: new Map(effects.map((one) => [one.provider, one.effects])),
      orders: new Map(orders.map(({ provider, suspension }) => [provider, suspension])),
    }
  }

  stop(): void {
    this.#ends.stop()
  }

  // --- destinations of a provider

  /**
   * True when a delivery may go on, whose mail exchangers belong to the provider `found`. Otherwise it was begun under other limits: the
   * provider of its destination changes, and the mail is delivered under those of the new one.
   */
  admits({ destination, provider: begunUnder }: RunningDelivery, found: string | null): boolean {
    const { clock, tasks } = this.#state
    const begun = begunUnder?.name ?? null
    if (begun === found) return true
    const { name, isReleased, provider } = destination
    if (isReleased || this.#changing.has(name) || begun !== (provider?.name ?? null)) return false
    const now = clock.monotonic()
    const changedAt = this.#changedAt.get(name)
    if (changedAt !== undefined && now - changedAt < SETTLED) return true
    this.#noteChange(name, now)
    this.#changing.add(name)
    tasks.add(this.#change(destination, found).finally(() => this.#changing.delete(name)))
    return false
  }

  #noteChange(name: DestinationName, now: Duration): void {
    if (this.#changedAt.size >= CHANGES_KEPT) for (const [one, at] of this.#changedAt) if (now - at >= SETTLED) this.#changedAt.delete(one)
    this.#changedAt.set(name, now)
  }

  async #change(destination: Destination, provider: string | null): Promise<void> {
    const { store, storeHealth, directory, fillsDirectory, events } = this.#state
    const { transfer, scheduler } = this.#loops
    const { name } = destination
    await transfer.rejoin(destination, async () => {
      await storeHealth.retryUntilCommitted(() => store.joinProvider(name, provider))
      if (fillsDirectory) directory.set(name, provider)
    })
    const what = provider === null ? 'belongs to no provider any more' : `belongs to provider ${provider}`
    events.emit({ kind: 'note', level: 'info', text: `destination ${name}: ${what}, by its mail exchangers` })
    scheduler.dispatch()
  }

  // --- reply rules

  /** Counts the refusals of a delivery, and applies the rules that they cause. */
  learn({ destination, provider }: RunningDelivery, { outcomes }: AttemptResult): void {
    const rules = provider?.table?.rules ?? []
    if (provider === null || rules.length === 0 || destination.isReleased) return
    const { clock, tasks } = this.#state
    const replies = [...outcomes.values()].flatMap(({ outcome, status: { reply } }) =>
      outcome === 'delivered' || reply === undefined ? [] : [reply],
    )
    if (replies.length === 0) return
    const counts = this.#rules.get(provider) ?? new ReplyRules()
    this.#rules.set(provider, counts)
    const begun = counts.learn({ rules, effects: provider.effects, replies, now: clock.now(), at: clock.monotonic() })
    if (begun.length === 0) return
    const wasSuspended = provider.suspension !== null
    tasks.add(this.#apply(provider, [...provider.effects, ...begun], provider.ordered))
    for (const effect of begun) this.#report(provider, effect)
    if (!wasSuspended && provider.suspension !== null) this.#tell(providerSuspended(provider.name, provider.suspension, clock.wall))
  }

  /** Tells of a suspension that a rule began, or of its end. */
  #tell(happened: Published): void {
    const { store, storeHealth, recorder, events, tasks } = this.#state
    events.emit(happened)
    tasks.add(storeHealth.retryUntilCommitted(() => recordEvent(store, recorder, happened)))
  }

  // --- orders of operators

  /**
   * Suspends a provider; resolves when that is committed and its mail in memory was given back. Rejects with StoreUnavailable, without effect,
   * when the commit fails.
   */
  async suspend(provider: Provider, suspension: Suspension): Promise<void> {
    await this.#state.store.records.providers.suspend({ provider: provider.name, suspension })
    this.#tellSuspended(provider, suspension)
    await this.#apply(provider, provider.effects, suspension)
  }

  /** Ends the suspension of a provider, by an operator or a rule; resolves when that is committed. Rejects as `suspend` does. */
  async resume(provider: Provider, by: string): Promise<void> {
    if (provider.suspension === null) return
    await this.#state.store.records.providers.resume({ provider: provider.name, effects: withoutSuspensions(provider.effects) })
    await this.#resumed(provider, by)
  }

  /** Applies the order of an operator at another node. The record may have overwritten a newer one, so it is saved again. */
  received(change: ProviderChange): void {
    const { table, tasks } = this.#state
    const provider = table.provider(change.provider)
    tasks.add('suspension' in change ? this.#suspended(provider, change.suspension) : this.#resumed(provider, ANOTHER_NODE))
  }

  /** Applies such orders, which may have been missed, to the providers whose names are `wanted`. */
  async compare(wanted: (name: DestinationName) => boolean): Promise<void> {
    const { table } = this.#state
    const { effects, orders } = await this.#readSaved()
    for (const name of new Set([...orders.keys(), ...Array.from(table.providers, (one) => one.name)])) {
      if (!wanted(nameOfProvider(name))) continue
      const provider = table.provider(name)
      const [order, saved] = [orders.get(name), effects.get(name) ?? []]
      const isRuleOver = provider.suspension !== null && !this.#saves.has(provider) && withoutSuspensions(saved).length === saved.length
      if (order !== undefined) {
        if (!isKnownAs(provider.ordered, order)) await this.#suspended(provider, order)
      } else if (provider.ordered !== null || isRuleOver) await this.#resumed(provider, ANOTHER_NODE)
    }
  }

  /** Applies a suspension that another node has ordered. */
  async #suspended(provider: Provider, suspension: Suspension): Promise<void> {
    if (!isKnownAs(provider.ordered, suspension)) this.#tellSuspended(provider, suspension)
    await this.#apply(provider, provider.effects, suspension)
  }

  #tellSuspended({ name }: Provider, suspension: Suspension): void {
    const { clock, events } = this.#state
    events.emit(providerSuspended(name, suspension, clock.wall))
  }

  async #resumed(provider: Provider, by: string): Promise<void> {
    if (provider.suspension !== null) this.#state.events.emit({ kind: 'provider-resumed', provider: provider.name, by })
    await this.#apply(provider, withoutSuspensions(provider.effects), null)
  }

  #report({ name }: Provider, { rule, action, until, reply }: RuleEffect): void {
    const { store, storeHealth, clock, events, tasks } = this.#state
    const at = clock.now()
    const effect = `${actionText(action)} for ${formatDuration(Math.round((until - at) / SECOND) * SECOND)}`
    events.emit({ kind: 'note', level: 'warning', text: `provider ${name}: ${effect} by rule ${rule}: ${reply}` })
    const record = { at, who: ruleLabel(name, rule), action: action.kind, arguments: `provider ${name}: ${effect}: ${reply}` }
    tasks.add(storeHealth.retryUntilCommitted(() => store.records.audit.add({ ...record, changed: 1 })).then(() => undefined))
  }

  /** Applies effects and a suspension to the destinations in memory, and saves the effects. Resolves when the mail of a suspended one was given back. */
  async #apply(provider: Provider, effects: readonly RuleEffect[], ordered: Suspension | null): Promise<void> {
    const { table, tasks } = this.#state
    const { due, giveBack, scheduler } = this.#loops
    provider.apply(effects, ordered)
    tasks.add(this.#save(provider))
    this.#expectEnds(provider)
    const destinations = [...table.all].filter((destination) => destination.provider === provider)
    const returned = provider.suspension === null ? [] : destinations.map((destination) => giveBack.waiting(destination))
    for (const destination of destinations) due.schedule(destination)
    scheduler.dispatch()
    await Promise.all(returned)
  }

  #expectEnds({ effects, ordered }: Provider): void {
    for (const { until } of [...effects, ...(ordered === null ? [] : [ordered])]) if (until !== null) this.#ends.expect(until)
  }

  /** Saves what applies at each try, so that a repeated one overwrites no newer state. */
  async #save(provider: Provider): Promise<void> {
    const { store, storeHealth, shards } = this.#state
    this.#saves.set(provider, (this.#saves.get(provider) ?? 0) + 1)
    try {
      await storeHealth.retryUntilCommitted(async () => {
        // The state of a provider whose shard another node has taken is that node's.
        if (shards.schedules(nameOfProvider(provider.name))) await store.records.providers.save(provider.record())
      })
    } finally {
      const left = (this.#saves.get(provider) ?? 0) - 1
      if (left > 0) this.#saves.set(provider, left)
      else this.#saves.delete(provider)
    }
  }

  /** Ends the effects and suspensions whose time has come or whose table is gone, of providers that this node schedules, and sets the alarm for the next end. */
  refresh(): void {
    const { clock, table, shards, tasks } = this.#state
    const now = clock.now()
    for (const provider of table.providers) {
      if (!shards.schedules(nameOfProvider(provider.name))) continue
      const { ordered, effects } = provider
      const rules = new Set(provider.table?.rules.map(({ name }) => name))
      const left = effects.filter(({ until, rule }) => until > now && rules.has(rule))
      const isOver = ordered !== null && (provider.table === undefined || (ordered.until ?? Infinity) <= now)
      const wasSuspended = provider.suspension !== null
      const happened = isOver ? this.#reportEnd(provider) : null
      if (isOver || left.length < effects.length) tasks.add(this.#apply(provider, left, isOver ? null : ordered))
      if (happened !== null) tasks.add(this.#endOrder(provider, now, happened))
      else if (wasSuspended && provider.suspension === null) this.#tell(resumed(provider))
      this.#expectEnds(provider)
    }
  }

  #reportEnd(provider: Provider): Published {
    const happened = resumed(provider)
    this.#state.events.emit(happened)
    return happened
  }

  /** Deletes the suspension of a provider that has ended. A later order stays, and effects are those that apply at each try. */
  async #endOrder(provider: Provider, now: QueueTime, happened: Published): Promise<void> {
    const { store, storeHealth, recorder } = this.#state
    const { providers } = store.records
    const { name, table } = provider
    await storeHealth.retryUntilCommitted(async () => {
      if (table !== undefined) await providers.endSuspension(name, now)
      else if (provider.ordered === null) await providers.resume(provider.record())
    })
    await storeHealth.retryUntilCommitted(() => recordEvent(store, recorder, happened))
  }
}

/** Event of a suspension that has ended by itself. */
const resumed = ({ name, table }: Provider): Published => ({
  kind: 'provider-resumed',
  provider: name,
  by: table === undefined ? 'the end of its table' : SUSPENSION_ENDED,
})
