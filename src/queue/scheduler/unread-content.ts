/**
 * Deliveries whose content the store could not return. An absence of the store is no attempt: it costs neither a step of the retry
 * schedule nor, at the end of the lifetime, the mail.
 */
import type { AttemptResult } from '../../delivery/delivery-agent.ts'
import type { DeliveryRequest, LeasedRecipient } from '../../mail/message.ts'
import { StoreUnavailable, type QueueStore } from '../../store/queue-store.ts'
import type { StoreHealth } from '../../store/store-health.ts'
import { SECOND, sleep, type Clock, type Duration } from '../../system/clock.ts'

export interface UnreadContentDeps {
  readonly store: Pick<QueueStore, 'ping' | 'readChunk'>
  readonly clock: Clock
  readonly storeHealth: StoreHealth
}

/** Number of reads, and the pause between them, after which a store that commits has an unreadable content. */
const READS = 3
const PAUSE: Duration = SECOND

/**
 * Recipients without an outcome, because the content could not be read for a while. Resolves when the store commits again. Empty when a
 * store that commits still cannot return the content: then the outcome is a deferral, whose waits grow. Rejects as retryUntilCommitted.
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
  for (let n = 1; n <= READS; n++) {
    if (n > 1) await sleep(clock, PAUSE, storeHealth.abandoned)
    await storeHealth.retryUntilCommitted(() => store.ping())
    try {
      await store.readChunk(message.contentId, chunk)
      return unread
    } catch (error) {
      // The next delivery reports a content that is damaged for good.
      if (!(error instanceof StoreUnavailable)) return unread
    }
  }
  return []
}

/** The request without these recipients. */
export const withoutRecipients = (request: DeliveryRequest, without: readonly LeasedRecipient[]): DeliveryRequest => ({
  ...request,
  recipients: request.recipients.filter((recipient) => !without.includes(recipient)),
})
