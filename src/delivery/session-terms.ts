/** On what terms a session is held: with whom, how long, how secure, under which name. */
import type { Socket } from 'node:net'
import type { Settings } from '../config/destination-settings.ts'
import type { Clock, Duration } from '../mail/clock.ts'
import type { Credentials } from './sasl-passwords.ts'
import type { TlsTerms } from './tls-policy.ts'
import type { Peer } from './transcript.ts'

export interface SessionTerms {
  readonly peer: Peer
  readonly clock: Clock
  readonly settings: Settings
  /** Our name in EHLO. */
  readonly helo: string
  readonly lmtp: boolean
  readonly tls: TlsTerms
  /** The TLS session to offer, and where to bring those that the host gives. */
  readonly ticket?: { readonly offered: Buffer | undefined; readonly keep: (ticket: Buffer) => void } | undefined
  readonly credentials?: Credentials | undefined
  /** A host that calls itself by our name is ourselves. */
  readonly detectLoop: boolean
  /** On the stopwatch: the attempt ends then, whatever it waits for. */
  readonly endBy: Duration
  /** Collects connections on which QUIT was said, until they are closed. */
  readonly leaving: Set<Socket>
}
