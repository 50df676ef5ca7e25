/** State of a delivery attempt: whether it goes on, and what its sessions leave for its result. Pure. */
import type { QueueTime } from '../../system/clock.ts'
import type { AttemptResult } from '../delivery-agent.ts'
import type { OutcomeTracker } from '../outcome-tracker.ts'
import type { Transcript } from '../transcript.ts'
import { relayName } from './host-session.ts'
import type { SmtpSession } from './smtp-session.ts'

/** Whether the attempt goes on. */
export type Progress =
  /** `sessions` counts those with hosts of the current next hop that completed the handshake (smtp_mx_session_limit). */
  | { readonly kind: 'trying'; readonly sessions: number }
  /** No connection or mail transaction may begin: the lease of this node has ended, or the delivery belongs to another provider. */
  | { readonly kind: 'barred' }
  /** No other host can change the outcome. */
  | { readonly kind: 'ended'; readonly by: 'lookup' }
  | { readonly kind: 'ended'; readonly by: 'content'; readonly unreadable: NonNullable<Transcript['unreadable']> }

export const BEGUN: Progress = { kind: 'trying', sessions: 0 }
export const BARRED: Progress = { kind: 'barred' }

/** Findings of the sessions of an attempt so far. */
export interface AttemptFacts {
  /** True when this relay is one of the mail exchangers of the recipient's domain. */
  readonly isRelayListed: boolean
  /** The host to which the last connection for the mail was made; null without one. */
  readonly relay: string | null
  /** Number of mail transactions of the last connection. */
  readonly connectionUse: number
  readonly oauth: string | undefined
  /** Time of the last MAIL; undefined when MAIL was not sent. */
  readonly transmittingAt: QueueTime | undefined
  readonly possiblySent: boolean
}

export const NO_SESSION: AttemptFacts = {
  isRelayListed: false,
  relay: null,
  connectionUse: 1,
  oauth: undefined,
  transmittingAt: undefined,
  possiblySent: false,
}

/** The progress after a mail transaction. */
export function progressAfter(progress: Progress, { unreadable }: Transcript): Progress {
  if (unreadable !== undefined) return { kind: 'ended', by: 'content', unreadable }
  return progress.kind === 'trying' ? { kind: 'trying', sessions: progress.sessions + 1 } : progress
}

/** The facts after a mail transaction. */
export const factsAfter = (
  facts: AttemptFacts,
  { peer, uses, oauth }: Pick<SmtpSession, 'peer' | 'uses' | 'oauth'>,
  { mailAt = facts.transmittingAt, possiblySent }: Transcript,
): AttemptFacts => ({
  ...facts,
  relay: relayName(peer),
  connectionUse: uses,
  oauth,
  transmittingAt: mailAt,
  possiblySent: facts.possiblySent || possiblySent,
})

interface EndedAttempt {
  readonly progress: Progress
  readonly facts: AttemptFacts
  readonly startedAt: QueueTime
  readonly endedAt: QueueTime
}

export function resultOf(
  outcomes: ReturnType<OutcomeTracker['close']>,
  { progress, facts, startedAt, endedAt }: EndedAttempt,
): AttemptResult {
  const { relay, connectionUse, oauth, transmittingAt, possiblySent } = facts
  const unreadable = progress.kind === 'ended' && progress.by === 'content' ? progress.unreadable : undefined
  return {
    ...outcomes,
    relay,
    connectionUse,
    oauth,
    times: { startedAt, transmittingAt: transmittingAt ?? endedAt, endedAt },
    ...(possiblySent ? { possiblySent: true } : {}),
    ...(unreadable?.lasting === true ? { unreadable: unreadable.why } : {}),
  }
}
