/** What happens at the far side, as plain values: a sink prints them, a world tells its stories from them. */
import type { Duration, Instant } from '../../mail/clock.ts'
import type { SpokenStage } from './rule.ts'

export type FarEvent =
  | { readonly event: 'lookup'; readonly name: string; readonly type: string; readonly answer: string; readonly rule?: string | undefined }
  /** A connection that was not let in. */
  | { readonly event: 'refused'; readonly mx: string; readonly client: string; readonly how: string; readonly rule: string }
  | { readonly event: 'connected'; readonly session: number; readonly mx: string; readonly client: string }
  | {
      readonly event: 'reply'
      readonly session: number
      readonly stage: SpokenStage
      /** What it answers; absent when nobody asked. */
      readonly command?: string | undefined
      /** What was said, or what was done instead: `(drop fin)`, `(stall)`. */
      readonly reply: string
      /** The rule that decided; absent when it was the usual reply. */
      readonly rule?: string | undefined
    }
  | {
      readonly event: 'message'
      readonly session: number
      readonly sender: string
      readonly recipients: readonly string[]
      readonly size: number
      readonly message_id?: string | undefined
      /** Is it in the mailboxes? */
      readonly kept: boolean
      /** What the client was told: a code, or nothing it can use. */
      readonly told: number | null
    }
  | { readonly event: 'closed'; readonly session: number; readonly by: 'client' | 'far side'; readonly stage: SpokenStage }

/** With the time it happened. */
export type Hear = (event: FarEvent, at: Instant) => void

/** A message that is in the mailboxes of its recipients. */
export interface ReceivedMail {
  /** Since the far side began. */
  readonly at: Duration
  readonly session: number
  readonly mx: string
  readonly helo: string
  readonly sender: string
  readonly recipients: readonly string[]
  /** Parameters of MAIL and of each RCPT, as sent: `SIZE=120 RET=HDRS`. */
  readonly mailParameters: string
  readonly rcptParameters: readonly string[]
  readonly content: Buffer
}
