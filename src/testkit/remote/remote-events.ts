/** Events of the remote network, as plain values. A sink prints them; a world adds them to its history. */
import type { Duration, WallTime } from '../../system/clock.ts'
import type { SpokenStage } from './rule.ts'

/** Event of the remote network. */
export type RemoteEvent =
  | { readonly event: 'lookup'; readonly name: string; readonly type: string; readonly answer: string; readonly rule?: string | undefined }
  /** Connection refused by a rule. */
  | { readonly event: 'refused'; readonly mx: string; readonly client: string; readonly how: string; readonly rule: string }
  | { readonly event: 'connected'; readonly session: number; readonly mx: string; readonly client: string }
  | {
      readonly event: 'reply'
      readonly session: number
      readonly stage: SpokenStage
      /** Command to which the reply belongs; absent for an unsolicited reply. */
      readonly command?: string | undefined
      /** The reply, or the action in its place: `(drop fin)`, `(stall)`. */
      readonly reply: string
      /** Name of the rule that was applied; absent for the default reply. */
      readonly rule?: string | undefined
    }
  | {
      readonly event: 'message'
      readonly session: number
      readonly sender: string
      readonly recipients: readonly string[]
      readonly size: number
      readonly message_id?: string | undefined
      /** True when the message was added to the mailboxes. */
      readonly kept: boolean
      /** Reply code that the client received; null when it received none. */
      readonly reply_code: number | null
    }
  /** A recipient that looks like a mistyped fault, once for each address: it was taken for an ordinary one. */
  | {
      readonly event: 'mistyped'
      readonly recipient: string
      readonly word: string
      /** The most similar word of a fault; null without one. */
      readonly meant: string | null
    }
  /** A request to an authorization server; without secrets and tokens. */
  | {
      readonly event: 'authority'
      readonly host: string
      /** `grant_type`; empty for a request of a device code. */
      readonly grant: string
      readonly oauth_client: string
      /** Status of the answer; null without one. */
      readonly status: number | null
      /** `error` of the answer; absent for a token. */
      readonly error?: string | undefined
      readonly rule?: string | undefined
    }
  | { readonly event: 'closed'; readonly session: number; readonly by: 'client' | 'server'; readonly stage: SpokenStage }

/** Receives each event with its time. */
export type RemoteListener = (event: RemoteEvent, at: WallTime) => void

/** A message in the mailboxes of its recipients. */
export interface ReceivedMail {
  /** Milliseconds since the remote network started. */
  readonly at: Duration
  readonly session: number
  readonly mx: string
  readonly helo: string
  readonly sender: string
  readonly recipients: readonly string[]
  /** Parameters of MAIL, as sent: `SIZE=120 RET=HDRS`. */
  readonly mailParameters: string
  /** Parameters of each RCPT, as sent, in the order of `recipients`. */
  readonly rcptParameters: readonly string[]
  /** True when it arrived over TLS. */
  readonly tls: boolean
  readonly content: Buffer
}
