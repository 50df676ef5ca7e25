/**
 * Why a queue cannot be opened, each with a sentence for the operator and the exit code of sysexits.h.
 */

/** Another process owns the queue; a second daemon or a command that would change it has to wait (EX_TEMPFAIL). */
export class QueueInUse extends Error {
  override readonly name = 'QueueInUse'
  readonly exitCode = 75
  /** The owner's process id; undefined in the moment before it has written it down. */
  readonly pid: number | undefined

  constructor(directory: string, pid: number | undefined, since: string | undefined) {
    const holder = pid === undefined ? 'another process' : `process ${pid}${since === undefined ? '' : ` (since ${since})`}`
    super(`the queue in ${directory} is in use by ${holder}`)
    this.pid = pid
  }
}

/** The queue was written by a newer deferd (EX_CONFIG). */
export class QueueTooNew extends Error {
  override readonly name = 'QueueTooNew'
  readonly exitCode = 78

  constructor(path: string, version: number, known: number) {
    super(`the queue ${path} has version ${version}, and this deferd knows versions up to ${known}: use the newer deferd that wrote it`)
  }
}

/** The folder or file cannot serve as a queue (EX_CONFIG). */
export class QueueFolderUnusable extends Error {
  override readonly name = 'QueueFolderUnusable'
  readonly exitCode = 78
}

/** There is no queue at the path (EX_UNAVAILABLE). */
export class NoSuchQueue extends Error {
  override readonly name = 'NoSuchQueue'
  readonly exitCode = 69

  constructor(directory: string) {
    super(`there is no queue in ${directory}`)
  }
}

/** A stored content does not read back as it was written: the message belongs in `corrupt`. */
export class ContentUnreadable extends Error {
  override readonly name = 'ContentUnreadable'
  /** EX_DATAERR, for commands that print contents. */
  readonly exitCode = 65
}
