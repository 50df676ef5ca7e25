/** A rehearsal is an attempt that ends each session before MAIL: it has the outcome of a delivery that the host would accept. */
import type { NextHop } from '../../config/values/next-hop.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { Verdict } from '../classify.ts'
import type { HostSearch } from '../routing/host-finder.ts'
import type { Host } from '../routing/host-order.ts'
import type { AppliedSts } from '../tls/tls-policy.ts'
import type { FailedSession, SmtpSession } from './smtp-session.ts'

/** Receives what an attempt finds. */
export interface Rehearsal {
  /** The hosts of a next hop, or why there is none, and its MTA-STS policy. */
  searched(hop: NextHop, search: HostSearch, sts: AppliedSts | null): void
  /** A session with a host, or why there is none. `inTurn` is false for a host to which a delivery would not have come. */
  tried(host: Host, session: SmtpSession | FailedSession, inTurn: boolean): void
}

/** Outcome at a host that is ready for MAIL. */
export function readyForMail({ tls }: Pick<SmtpSession, 'tls'>): Verdict {
  const status: DeliveryStatus = { status: '2.0.0', reason: 'ready for mail', stage: 'ehlo', tls }
  return { outcome: 'delivered', status, elsewhere: false }
}
