/** State of the relay that every screen of the page shows: whether it accepts and delivers mail, and how long a commit takes. */
import { errorMessage } from '../system/caught-error.ts'
import { seconds, withTimeout, type Clock, type Duration } from '../system/clock.ts'
import type { OpenParts } from './opening.ts'

interface RelayLightDeps {
  readonly clock: Clock
  /** Null while no queue is open. */
  readonly parts: () => Pick<OpenParts, 'store' | 'relay'> | null
}

interface RelayLight {
  readonly isOk: boolean
  readonly text: string
}

/** A younger result is not renewed, because a commit costs a sync of the disk. */
const LEAST_AGE: Duration = seconds(10)
const TIMEOUT: Duration = seconds(2)

/** Examines the relay at most once in LEAST_AGE. */
export function relayLight({ clock, parts }: RelayLightDeps): () => Promise<RelayLight> {
  let last: { readonly at: Duration; readonly light: Promise<RelayLight> } | null = null
  const examine = async (): Promise<RelayLight> => {
    const open = parts()
    if (open === null) return { isOk: false, text: 'the queue is not open' }
    const startedAt = clock.monotonic()
    try {
      await open.store.ping()
      const took = clock.monotonic() - startedAt
      await open.relay.intake.assertSpace()
      await open.relay.scheduler.alive()
      return { isOk: true, text: `commits in ${Math.max(1, Math.round(took))} ms` }
    } catch (error) {
      return { isOk: false, text: errorMessage(error) }
    }
  }
  return () => {
    const now = clock.monotonic()
    if (last === null || now - last.at >= LEAST_AGE) {
      const light = withTimeout(examine(), clock, TIMEOUT)
      last = { at: now, light: light.then((found) => found ?? { isOk: false, text: 'the store does not answer' }) }
    }
    return last.light
  }
}
