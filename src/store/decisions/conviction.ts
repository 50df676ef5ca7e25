/** Decides whether mail that was in delivery at a failure becomes corrupt. */
import { SHARED_STARTS_UNTIL_CORRUPT, STARTS_UNTIL_CORRUPT } from '../../mail/message.ts'

/** The process that failed: the daemon of a queue with one owner, or one of several nodes. */
export type Failed = 'daemon' | 'node'

/** Reason why a message becomes corrupt, by the starts of a delivery that has not ended; null while it is tried again. */
export function convictionOf(starts: number, failed: Failed): string | null {
  switch (failed) {
    case 'daemon':
      return starts >= STARTS_UNTIL_CORRUPT ? `in delivery when the daemon died, ${starts} times` : null
    case 'node':
      return starts >= SHARED_STARTS_UNTIL_CORRUPT ? `in delivery when its node failed, ${starts} times` : null
  }
}
