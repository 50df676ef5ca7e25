/**
 * Runs checkpoints, which copy the write-ahead log into the database file, between transactions. SQLite's automatic checkpoint
 * ignores its own I/O errors (sqlite3WalDefaultHook). A page whose sync failed would be lost when the log is written from the
 * start again. So the automatic checkpoint is disabled, and errors are reported here.
 */
import Database from 'better-sqlite3'
import { StoreFailed } from '../../queue-store.ts'
import { CheckpointPace, DUE_FROM } from './checkpoint-pace.ts'

/**
 * Factor: a checkpoint waits for readers when the log has this many times the frames at which a checkpoint is due. Overlapping
 * readers otherwise prevent the log from being reused.
 */
const RESTART_FACTOR = 4
/** Maximum wait for readers in ms. No call is answered during the wait. */
const READERS_WAIT = 100

/**
 * Columns of `pragma wal_checkpoint`: 1 when a reader or another process prevented the checkpoint from completing; frames in the log;
 * frames that were copied to the database file. The last two are -1 without a log. The row is an array, because SQLite compiles the
 * pragma at each use, and better-sqlite3 then compiles a function that makes an object of the row.
 */
type LogState = readonly [busy: number, log: number, checkpointed: number]

export class Checkpoints {
  readonly #db: Database.Database
  readonly #dueFrom: number
  readonly #now: () => number
  readonly #pace: CheckpointPace
  readonly #state
  readonly #passive
  #restartFrom: number

  /** `hasRoom` is that of CheckpointPace. Without `now`, the time in ms, no checkpoint is slow. */
  constructor(db: Database.Database, { dueFrom = DUE_FROM, hasRoom = (): boolean => false, now = (): number => 0 } = {}) {
    this.#db = db
    this.#dueFrom = dueFrom
    this.#now = now
    this.#pace = new CheckpointPace(dueFrom, hasRoom)
    this.#restartFrom = RESTART_FACTOR * dueFrom
    this.#state = db.prepare<[], LogState>('pragma wal_checkpoint(noop)').raw()
    this.#passive = db.prepare<[], LogState>('pragma wal_checkpoint(passive)').raw()
  }

  /** Runs a checkpoint if one is due, and takes 3 µs otherwise. Throws StoreFailed. No transaction may be open. */
  runIfDue(): void {
    const [, log, checkpointed] = attempt(() => this.#state.get())
    const begun = this.#now()
    if (checkpointed === log || !this.#pace.isDue(log, begun)) return
    this.run()
    const ended = this.#now()
    this.#pace.ended(ended - begun, ended)
    const restartFrom = RESTART_FACTOR * this.#dueFrom
    if (log >= this.#restartFrom) this.#restart(log)
    else if (log < restartFrom) this.#restartFrom = restartFrom
  }

  /**
   * Runs a checkpoint, as far as readers and disk space permit. Returns whether the next transaction can write to the start of
   * the log. Throws StoreFailed.
   */
  run(): boolean {
    const [, log, checkpointed] = attempt(() => this.#passive.get())
    return log === checkpointed
  }

  /** Copies the log and cuts its file to no bytes. Returns false when readers prevented it. Throws StoreFailed. */
  truncate(): boolean {
    const [busy] = this.#waiting('truncate')
    return busy === 0
  }

  /** Waits for readers, so that the next transaction writes to the start of the log. Waits again only after the log has grown. */
  #restart(log: number): void {
    this.#waiting('restart')
    this.#restartFrom = log + this.#dueFrom
  }

  #waiting(mode: 'restart' | 'truncate'): LogState {
    const timeout = Number(this.#db.pragma('busy_timeout', { simple: true }))
    this.#db.pragma(`busy_timeout = ${READERS_WAIT}`)
    try {
      return attempt(() => this.#db.prepare<[], LogState>(`pragma wal_checkpoint(${mode})`).raw().get())
    } finally {
      this.#db.pragma(`busy_timeout = ${timeout}`)
    }
  }
}

/** Returns a function that counts the frames in the log of a connection. */
export function logFrames(db: Database.Database): () => number {
  const state = db.prepare<[], LogState>('pragma wal_checkpoint(noop)').raw()
  return () => Math.max(0, attempt(() => state.get())[1])
}

/** State of a log that could not be moved. */
const UNMOVED: LogState = [1, 0, -1]

/**
 * Runs a checkpoint. A full disk is not an error here: outcomes are written to the log while it has room. Throws StoreFailed for
 * any other error, after which the state of the disk is unknown.
 */
function attempt(checkpoint: () => LogState | undefined): LogState {
  try {
    return checkpoint() ?? UNMOVED
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error
    if (error.code === 'SQLITE_FULL') return UNMOVED
    throw new StoreFailed(`I/O error while the write-ahead log was moved into the queue file: ${error.message} (${error.code})`, {
      cause: error,
    })
  }
}
