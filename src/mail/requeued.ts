/** The reason of a recipient that goes on in another message, and the queue id of that message. */

const REASON = /^requeued as (\w+)$/

export const requeuedReason = (queueId: string): string => `requeued as ${queueId}`

/** The queue id in such a reason; undefined in any other. */
export const requeuedAs = (reason: string | null): string | undefined => REASON.exec(reason ?? '')?.[1]
