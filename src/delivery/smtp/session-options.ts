/** Options of one SMTP session: peer, name, time limits, TLS and login. */
import type { Socket } from 'node:net'
import type { Settings } from '../../config/destination-settings.ts'
import type { SessionRecorder } from '../../sessions/session-recorder.ts'
import type { Clock, Duration } from '../../system/clock.ts'
import type { Credentials } from '../tls/sasl-credentials.ts'
import type { TlsConnection } from '../tls/tls-connection.ts'
import type { TlsTerms } from '../tls/tls-policy.ts'
import type { Peer } from '../transcript.ts'

export interface SessionOptions {
  readonly peer: Peer
  readonly clock: Clock
  /** Time when the connection began, on the monotonic clock. */
  readonly openedAt: Duration
  readonly settings: Settings
  /** The relay's name in EHLO (smtp_helo_name). */
  readonly helo: string
  readonly lmtp: boolean
  readonly tls: TlsTerms
  /** Called when the host has sent its greeting, of any code. */
  readonly greeted?: (() => void) | undefined
  /** Called when TLS is established. */
  readonly secured?: ((tls: TlsConnection) => void) | undefined
  /** The TLS session to resume, and a function that stores the sessions that the host sends. */
  readonly ticket?: { readonly offered: Buffer | undefined; readonly keep: (ticket: Buffer) => void } | undefined
  readonly credentials?: Credentials | undefined
  /** True to fail with `loop` when the host has the relay's own name. */
  readonly detectLoop: boolean
  /** End of the attempt on the monotonic clock. */
  readonly endBy: Duration
  /** Connections that are open after QUIT was sent. */
  readonly quitting: Set<Socket>
  /** Records the session; absent or null where nothing is recorded. */
  readonly recorder?: SessionRecorder | null | undefined
  /** True to describe the certificate of the host. */
  readonly inspects?: boolean | undefined
}
