/**
 * Examines the database at the begin of each writing session. After a failover to an asynchronous standby, the last commits of the former
 * primary server may be missing: mail, and reservations of message ids, which the server would give to other nodes again.
 */
import type { MessageId } from '../../../mail/message.ts'
import { DatabaseError } from 'pg'
import type { Statements } from '../session/database-connection.ts'
import type { RecentMail } from './recent-mail.ts'
import type { Failover } from '../../membership/writing-events.ts'

/**
 * Number of promotions of a standby so far (PostgreSQL, "Timelines"). The function is absent in services with a storage of their own, and
 * fails there.
 */
export const timeline = `select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline`

/** Last id that the sequence has given to a node. */
const lastReserved = 'select last_value as last from message_id'

/** Reserves all ids up to $1 again, so that no other node gets them. */
const reserveAgain = `
  select count(nextval('message_id')) as again from generate_series((select last_value from message_id) + 1, $1::bigint)`

interface ReservedIds {
  /** The highest id that was reserved. */
  readonly highest: MessageId
  /** Drops the unused ids up to `last`. */
  dropUpTo(last: MessageId): void
}

export class FailoverCheck {
  readonly #recent: RecentMail
  readonly #ids: () => ReservedIds
  /** Undefined before the first session. */
  #timeline: number | null | undefined

  constructor(recent: RecentMail, ids: () => ReservedIds) {
    this.#recent = recent
    this.#ids = ids
  }

  /**
   * Examines a new session. Null when no mail is missing and the server is the same. After a rejection it can be called again, and finds
   * the same.
   */
  async run(statements: Statements): Promise<Failover | null> {
    const now = await timelineOf(statements)
    const missing = await this.#recent.missing(statements)
    const isOther = this.#timeline !== undefined && this.#timeline !== now
    if (this.#timeline !== undefined && (isOther || missing.size > 0)) await this.#keepIds(statements)
    this.#timeline = now
    this.#recent.forget(missing.keys())
    return isOther || missing.size > 0 ? { timeline: now, lost: [...missing.values()] } : null
  }

  /**
   * Drops the ids that the server may have given to another node since the failover, and keeps it from giving away the others, which
   * this node may use.
   */
  async #keepIds(statements: Statements): Promise<void> {
    const ids = this.#ids()
    const [row] = await statements.query<{ last: MessageId }>(lastReserved)
    ids.dropUpTo(row?.last ?? ids.highest)
    await statements.query(reserveAgain, [ids.highest])
  }
}

async function timelineOf(statements: Statements): Promise<number | null> {
  try {
    const [row] = await statements.query<{ timeline: number }>(timeline)
    return row?.timeline ?? null
  } catch (error) {
    if (error instanceof DatabaseError) return null
    throw error
  }
}
