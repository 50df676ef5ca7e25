/** A message as a queue file of Postfix has it. */
import type { Notify, Ret } from '../../mail/envelope.ts'
import type { WallTime } from '../../system/clock.ts'

export interface PostfixRecipient {
  /** In Postfix's form: without quotes around the local part. */
  readonly address: string
  readonly notify: Notify | undefined
  readonly orcpt: string | undefined
  /** True after the delivery or the bounce. */
  readonly isDone: boolean
  /** Offset of the recipient's record, which identifies the recipient in logfiles. */
  readonly offset: number
}

export interface PostfixMessage {
  /** Seconds and microseconds of the arrival, as text. */
  readonly arrival: string
  readonly arrivedAt: WallTime
  /** Start of the lifetime. A requeue sets it again. */
  readonly createdAt: WallTime
  /** Without quotes around the local part; empty for the null sender. */
  readonly sender: string
  /** Name of the submitting user; null when the file has none. */
  readonly fullName: string | null
  readonly recipients: readonly PostfixRecipient[]
  readonly ret: Ret | undefined
  readonly envid: string | undefined
  readonly smtputf8: boolean
  /** True after a delay warning. */
  readonly isWarned: boolean
  /** The content with CRLF line ends. */
  readonly content: Buffer
}

/** Kind of a file: submitted by sendmail, or accepted and rewritten by Postfix. */
export type FileKind = 'submission' | 'queued'
