/** Removes the kept MTA-STS policy of a domain by order of an operator, with a record in the audit log. */
import type { QueueStore } from '../../store/queue-store.ts'
import type { Actor } from '../../store/records/audit-log.ts'
import type { Clock } from '../../system/clock.ts'

export interface PolicyRemoval extends Actor {
  readonly domain: string
}

/** Returns false when no policy of the domain is kept. */
export async function removePolicy(
  { domain, ...actor }: PolicyRemoval,
  { store, clock }: { readonly store: Pick<QueueStore, 'records'>; readonly clock: Pick<Clock, 'now'> },
): Promise<boolean> {
  const isRemoved = await store.records.stsPolicies.forget(domain)
  if (isRemoved) await store.records.audit.add({ at: clock.now(), ...actor, action: 'tls-forget', arguments: domain, changed: 1 })
  return isRemoved
}
