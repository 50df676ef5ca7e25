/** State of the relay that every screen of the page shows: whether it accepts and delivers mail, and how long a commit takes. */
import { grouped } from '../presentation/text.ts'
import { errorMessage } from '../system/caught-error.ts'
import { seconds, withTimeout, type Clock, type Duration } from '../system/clock.ts'
import type { RelayHealth } from '../queries/queue-view.ts'
import type { OpenParts } from './opening.ts'

interface RelayHealthDeps {
  readonly clock: Clock
  /** Null while no queue is open. */
  readonly parts: () => Pick<OpenParts, 'store' | 'relay'> | null
}

/** Time of a commit from which on the health is `slow`. */
const SLOW: Duration = 250

/** A younger result is not renewed, because a commit costs a sync of the disk. */
const LEAST_AGE: Duration = seconds(10)
/** Time of a commit from which on the health is `failing`. */
const TIMEOUT: Duration = seconds(2)

/** Examines the relay at most once in LEAST_AGE. */
export function relayHealth({ clock, parts }: RelayHealthDeps): () => Promise<RelayHealth> {
  let last: { readonly at: Duration; readonly health: Promise<RelayHealth> } | null = null
  const examine = async (): Promise<RelayHealth> => {
    const open = parts()
    if (open === null) return { state: 'failing', text: 'the queue is not open' }
    const startedAt = clock.monotonic()
    try {
      await open.store.upkeep.ping()
      const took = clock.monotonic() - startedAt
      await open.relay.intake.assertSpace()
      await open.relay.scheduler.alive()
      return { state: took < SLOW ? 'good' : 'slow', text: `commits in ${grouped(Math.max(1, Math.round(took)))} ms` }
    } catch (error) {
      return { state: 'failing', text: errorMessage(error) }
    }
  }
  return () => {
    const now = clock.monotonic()
    if (last === null || now - last.at >= LEAST_AGE) {
      const health = withTimeout(examine(), clock, TIMEOUT)
      last = { at: now, health: health.then((found) => found ?? { state: 'failing', text: 'no commit within 2 s' }) }
    }
    return last.health
  }
}
