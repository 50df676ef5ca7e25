/**
 * Changes of providers: which destinations belong to them, and which reply rules apply. Both are committed, so that they survive a
 * restart. Suspensions and limits by rules end by themselves, at the latest at the next start after their end, and with their rules.
 */
import type { GiveBack } from './give-back.ts'
import { nameOfProvider } from '../../config/provider-directory.ts'
import { actionText } from '../../config/values/provider-table.ts'
import type { AttemptResult } from '../../delivery/delivery-agent.ts'
import type { DestinationName } from '../../mail/message.ts'
import { ruleLabel, withoutSuspensions, type ProviderRecord, type RuleEffect } from '../../store/records/provider-state.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import { MINUTE, type Duration } from '../../system/clock.ts'
import { formatDuration } from '../../system/duration.ts'
import { EarliestAlarm } from '../../system/earliest-alarm.ts'
import type { Destination } from './destination.ts'
import { ANOTHER_NODE } from './destination-control.ts'
import type { RunningDelivery } from './destination-table.ts'
import type { DueQueue } from './due-queue.ts'
import type { Provider } from './provider.ts'
import { ReplyRules } from './reply-rules.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'
import type { ShardTransfer } from './shard-transfer.ts'

type State = Pick<
  SchedulerState,
  'store' | 'clock' | 'events' | 'storeHealth' | 'directory' | 'fillsDirectory' | 'table' | 'shards' | 'tasks'
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
    const saved = new Map((await store.records.providers.all()).map(({ provider, effects }) => [provider, effects]))
    for (const name of new Set([...saved.keys(), ...Array.from(table.providers, (one) => one.name)]))
      if (wanted(nameOfProvider(name))) table.provider(name).apply(saved.get(name) ?? [])
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
    const { clock } = this.#state
    const replies = [...outcomes.values()].flatMap(({ outcome, status: { reply } }) =>
      outcome === 'delivered' || reply === undefined ? [] : [reply],
    )
    if (replies.length === 0) return
    const counts = this.#rules.get(provider) ?? new ReplyRules()
    this.#rules.set(provider, counts)
    const begun = counts.learn({ rules, effects: provider.effects, replies, now: clock.now(), at: clock.monotonic() })
    if (begun.length === 0) return
    this.#apply(provider, [...provider.effects, ...begun])
    for (const effect of begun) this.#report(provider, effect)
  }

  /**
   * Ends the suspension of a provider by order of an operator; resolves when that is committed. Rejects with StoreUnavailable, without
   * effect, when the commit fails.
   */
  async resume(provider: Provider, by: string): Promise<void> {
    if (provider.suspension === null) return
    await this.#state.store.records.providers.save({ provider: provider.name, effects: withoutSuspensions(provider.effects) })
    this.#resumed(provider, by)
  }

  /** Applies the order of an operator at another node to end a suspension. The record may have overwritten a newer one, so it is saved again. */
  received({ provider }: ProviderRecord): void {
    this.#resumed(this.#state.table.provider(provider), ANOTHER_NODE)
  }

  /** Applies such orders, which may have been missed, to the providers whose names are `wanted`. */
  async compare(wanted: (name: DestinationName) => boolean): Promise<void> {
    const { store, table } = this.#state
    const isSaved = (provider: Provider): boolean => provider.suspension !== null && !this.#saves.has(provider)
    const suspended = [...table.providers].filter((provider) => isSaved(provider) && wanted(nameOfProvider(provider.name)))
    if (suspended.length === 0) return
    const saved = new Map((await store.records.providers.all()).map(({ provider, effects }) => [provider, effects]))
    for (const provider of suspended) {
      const effects = saved.get(provider.name) ?? []
      if (withoutSuspensions(effects).length === effects.length) this.#resumed(provider, ANOTHER_NODE)
    }
  }

  #resumed(provider: Provider, by: string): void {
    if (provider.suspension !== null)
      this.#state.events.emit({ kind: 'note', level: 'info', text: `provider ${provider.name}: resumed by ${by}` })
    this.#apply(provider, withoutSuspensions(provider.effects))
  }

  #report({ name }: Provider, { rule, action, until, reply }: RuleEffect): void {
    const { store, storeHealth, clock, events, tasks } = this.#state
    const at = clock.now()
    const effect = `${actionText(action)} for ${formatDuration(until - at)}`
    events.emit({ kind: 'note', level: 'warning', text: `provider ${name}: ${effect} by rule ${rule}: ${reply}` })
    const record = { at, who: ruleLabel(name, rule), action: action.kind, arguments: `provider ${name}: ${effect}: ${reply}` }
    tasks.add(storeHealth.retryUntilCommitted(() => store.auditLog.audit({ ...record, changed: 0 })).then(() => undefined))
  }

  /** Applies effects to the destinations in memory, and saves them. */
  #apply(provider: Provider, effects: readonly RuleEffect[]): void {
    const { table, tasks } = this.#state
    const { due, giveBack, scheduler } = this.#loops
    provider.apply(effects)
    tasks.add(this.#save(provider))
    for (const { until } of effects) this.#ends.expect(until)
    for (const destination of table.all) {
      if (destination.provider !== provider) continue
      if (provider.suspension !== null) tasks.add(giveBack.waiting(destination))
      due.schedule(destination)
    }
    scheduler.dispatch()
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

  /** Ends the effects whose time has come or whose rule is gone, of providers that this node schedules, and sets the alarm for the next end. */
  refresh(): void {
    const { clock, table, shards } = this.#state
    const now = clock.now()
    for (const provider of table.providers) {
      if (!shards.schedules(nameOfProvider(provider.name))) continue
      const rules = new Set(provider.table?.rules.map(({ name }) => name))
      const left = provider.effects.filter(({ until, rule }) => until > now && rules.has(rule))
      if (left.length < provider.effects.length) this.#apply(provider, left)
      for (const { until } of left) this.#ends.expect(until)
    }
  }
}

/**
 * Ends the suspension of a provider that another process schedules, or none; null for no provider. The store tells its scheduler, or
 * the next one loads it.
 */
export async function endSavedSuspension(store: Pick<QueueStore, 'records'>, provider: string | null): Promise<void> {
  if (provider === null) return
  const effects = (await store.records.providers.all()).find((one) => one.provider === provider)?.effects ?? []
  const left = withoutSuspensions(effects)
  if (left.length < effects.length) await store.records.providers.save({ provider, effects: left })
}
