/** Reports of the salvage and of the repair of a damaged queue. */

/** The mail of a salvaged queue. */
export interface SalvagedMail {
  /** Messages outside of `corrupt`. */
  readonly messages: number
  readonly corrupt: readonly { readonly queueId: string; readonly why: string }[]
  /** Messages put on hold, because a newer version of their rows may have been lost. */
  readonly held: number
}

export interface SalvageReport extends SalvagedMail {
  /** Pages that could not be read, one sentence each, with the messages that may have been on them. */
  readonly lost: readonly string[]
}

export interface Repair extends SalvageReport {
  /** The sign of the damage. */
  readonly why: string
  /** Path at which the damaged database is kept; null when the file was missing. */
  readonly kept: string | null
}

/** Lines for the log: the repair, then one line per unreadable part. */
export function repairLines({ why, kept, messages, corrupt, held, lost }: Repair): readonly string[] {
  return [
    `the queue was damaged (${why}) and was rebuilt from its readable pages: ${messages} messages, ${corrupt.length} in corrupt, ${held} put on hold; the damaged file is kept as ${kept ?? 'nothing'}`,
    ...lost.map((one) => `unreadable: ${one}`),
  ]
}
