/**
 * The connections that are open. There are never more than smtpd_process_limit: when the house is full, the one that has
 * kept us waiting longest makes room for the next, and when none has waited long, the next is asked to come back.
 */
import { SECOND, type Clock, type Duration } from '../mail/clock.ts'
import type { Connection } from './connection.ts'

/** Whoever says nothing for so long may have to go (the patience of a busy Postfix: smtpd_timeout under stress). */
const PATIENCE: Duration = 10 * SECOND

export class Guests {
  readonly #open = new Set<Connection>()
  #emptied: (() => void) | undefined

  /** Are there no more than `limit`, or does somebody make room? Zero is no limit. */
  haveRoom(limit: number, now: Duration): boolean {
    if (limit === 0 || this.#open.size <= limit) return true
    let longest: Connection | undefined
    for (const one of this.#open) if (one.idleSince < (longest?.idleSince ?? now - PATIENCE)) longest = one
    longest?.giveWay()
    return longest !== undefined
  }

  add(connection: Connection): void {
    this.#open.add(connection)
  }

  delete(connection: Connection): void {
    this.#open.delete(connection)
    if (this.#open.size === 0) this.#emptied?.()
  }

  /** Shows everybody out; resolves when all have gone, at the latest after `grace`, when the rest are cut off. */
  drain(grace: Duration, clock: Clock): Promise<void> {
    return new Promise((resolve) => {
      const timer = clock.after(grace, () => {
        for (const connection of this.#open) connection.cut()
        resolve()
      })
      this.#emptied = () => {
        timer.cancel()
        resolve()
      }
      for (const connection of this.#open) connection.drain()
      if (this.#open.size === 0) this.#emptied()
    })
  }
}
