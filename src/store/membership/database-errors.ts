/** Errors of the database of a queue, each a sentence for the operator with an exit code of sysexits(3). */
import { StoreUnavailable } from '../queue-store.ts'

/** No server of the queue accepts connections or writes now (EX_TEMPFAIL). */
export class DatabaseAway extends StoreUnavailable {
  override readonly name = 'DatabaseAway'
  override readonly exitCode = 75
}

/** The database cannot hold a queue until an operator has changed it or the configuration (EX_CONFIG). */
export class DatabaseUnusable extends StoreUnavailable {
  override readonly name = 'DatabaseUnusable'
  override readonly exitCode = 78
}
