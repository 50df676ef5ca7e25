/** Removes the kept MTA-STS policy of a domain by order of an operator, with a record in the audit log. */
import type { QueueStore } from '../../store/queue-store.ts'
import type { Clock } from '../../system/clock.ts'

export interface PolicyRemoval {
  readonly domain: string
  readonly who: string
}

/** Returns false when no policy of the domain is kept. */
export async function removePolicy(
  { domain, who }: PolicyRemoval,
  { store, clock }: { readonly store: Pick<QueueStore, 'records' | 'auditLog'>; readonly clock: Pick<Clock, 'now'> },
): Promise<boolean> {
  const isRemoved = await store.records.stsPolicies.forget(domain)
  if (isRemoved) await store.auditLog.audit({ at: clock.now(), who, action: 'tls-forget', arguments: domain, changed: 1 })
  return isRemoved
}
