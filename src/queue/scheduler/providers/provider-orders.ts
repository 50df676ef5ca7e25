/**
 * Orders of operators to suspend or resume a provider that another process schedules, or none does: they are saved, and the store tells its
 * scheduler, or the next one loads them.
 */
import { nameOfProvider } from '../../../config/provider-directory.ts'
import type { Published } from '../../../outbox/event-data.ts'
import type { EventRecorder } from '../../../outbox/event-recorder.ts'
import type { Suspension } from '../../../store/records/suspension.ts'
import type { Membership } from '../../../store/membership/membership.ts'
import type { QueueStore } from '../../../store/queue-store.ts'
import { withoutSuspensions } from '../../../store/records/provider-state.ts'
import type { WallView } from '../../../system/wall-view.ts'

interface OrderDeps {
  readonly store: Pick<QueueStore, 'records' | 'outbox'>
  readonly recorder: EventRecorder
}

/** Event of a suspension of a provider. */
export const providerSuspended = (provider: string, { by, until, reason }: Suspension, wall: WallView) =>
  ({ kind: 'provider-suspended', provider, by, until: wall.orNull(until), reason }) as const

/** Records an event for programs. */
export async function recordEvent(store: OrderDeps['store'], recorder: EventRecorder, happened: Published): Promise<void> {
  const told = recorder.of(happened)
  if (told !== undefined) await store.outbox.recordEvents(told)
}

/** Suspends a provider. Resolves when no attempt to its destinations begins any more, on any node. */
export async function suspendSavedProvider(
  { store, recorder, recall }: OrderDeps & Pick<Membership, 'recall'>,
  provider: string,
  suspension: Suspension,
): Promise<void> {
  await store.records.providers.suspend({ provider, suspension })
  await recall({ messages: [], destination: nameOfProvider(provider), rests: false })
  await recordEvent(store, recorder, providerSuspended(provider, suspension, recorder.wall))
}

/** Ends the suspension of a provider, by an operator or by a rule; without one, changes nothing. */
export async function resumeSavedProvider({ store, recorder }: OrderDeps, provider: string, by: string): Promise<void> {
  const { providers } = store.records
  const effects = (await providers.all()).find((one) => one.provider === provider)?.effects ?? []
  const left = withoutSuspensions(effects)
  const isOrdered = (await providers.suspensions()).some((one) => one.provider === provider)
  if (!isOrdered && left.length === effects.length) return
  await providers.resume({ provider, effects: left })
  await recordEvent(store, recorder, { kind: 'provider-resumed', provider, by })
}
