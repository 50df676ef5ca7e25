/**
 * Deliveries whose content the store could not return. An absence of the store is no attempt: it costs neither a step of the retry
 * schedule nor, at the end of the lifetime, the mail.
 */
import type { AttemptResult } from '../../delivery/delivery-agent.ts'
import type { DeliveryRequest, LeasedRecipient } from '../../mail/message.ts'
import { ReadFailed, StoreUnavailable, type QueueStore } from '../../store/queue-store.ts'
import type { StoreHealth } from '../../store/store-health.ts'
import { SECOND, sleep, type Clock, type Duration } from '../../system/clock.ts'

export interface UnreadContentDeps {
  readonly store: Pick<QueueStore, 'ping' | 'readChunk'>
  readonly clock: Clock
  readonly storeHealth: StoreHealth
}

/** Number of reads that fail with ReadFailed after which a content is unreadable, and the pause between two reads. */
const READS = 3
const PAUSE: Duration = SECOND

/**
 * Recipients without an outcome, because the content could not be read for a while. Resolves when the store commits and reads again. Empty
 * when only this content stays unreadable: then the outcome is a deferral, whose waits grow. Rejects as retryUntilCommitted.
 */
export async function unreadRecipients(
  deps: UnreadContentDeps,
  { message, recipients }: Pick<DeliveryRequest, 'message' | 'recipients'>,
  { outcomes }: Pick<AttemptResult, 'outcomes'>,
): Promise<readonly LeasedRecipient[]> {
  const { store, clock, storeHealth } = deps
  const unread = recipients.filter(({ id }) => outcomes.get(id)?.unreadChunk !== undefined)
  const [chunk] = unread.map(({ id }) => outcomes.get(id)?.unreadChunk)
  if (chunk === undefined) return []
  for (let failures = 0; failures < READS;) {
    await storeHealth.retryUntilCommitted(() => store.ping())
    try {
      await store.readChunk(message.contentId, chunk)
      return unread
    } catch (error) {
      // The next delivery reports a content that is damaged for good.
      if (!(error instanceof StoreUnavailable)) return unread
      if (storeHealth.abandoned.aborted) throw error
      if (error instanceof ReadFailed) failures++
    }
    await sleep(clock, PAUSE, storeHealth.abandoned)
  }
  return []
}

/** The request without these recipients. */
export const withoutRecipients = (request: DeliveryRequest, without: readonly LeasedRecipient[]): DeliveryRequest => ({
  ...request,
  recipients: request.recipients.filter((recipient) => !without.includes(recipient)),
})
