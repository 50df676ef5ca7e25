/** Rotating refresh tokens in a plain map. */
import { isContinuedBy, type GrantStore, type KeptGrant, type SharedGrant } from '../../oauth/shared-grant.ts'
import type { QueueTime } from '../../system/clock.ts'

interface Row {
  grant: KeptGrant | null
  claimedUntil: QueueTime
}

/** Synchronous form of GrantStore. */
type Held = { readonly [M in keyof GrantStore]: (...args: Parameters<GrantStore[M]>) => Awaited<ReturnType<GrantStore[M]>> }

export class MemoryGrants implements Held {
  /** By name and user. */
  readonly #rows = new Map<string, Row>()

  sharedGrant(name: string, user: string): SharedGrant | null {
    const grant = this.#rows.get(keyOf(name, user))?.grant ?? null
    if (grant === null) return null
    const { name: _, user: __, ...rest } = grant
    return rest
  }

  claimGrant(name: string, user: string, { now, until }: { readonly now: QueueTime; readonly until: QueueTime }): boolean {
    const row = this.#row(name, user)
    if (row.claimedUntil > now) return false
    row.claimedUntil = until
    return true
  }

  replaceGrant(name: string, user: string, grant: SharedGrant): boolean {
    if ((this.sharedGrant(name, user)?.generation ?? 0) !== grant.generation - 1) return false
    this.#rows.set(keyOf(name, user), { grant: { ...grant, name, user }, claimedUntil: 0 })
    return true
  }

  releaseGrant(name: string, user: string): void {
    this.#row(name, user).claimedUntil = 0
  }

  /** Ends the claims of an owner that has ended. */
  endClaims(): void {
    for (const row of this.#rows.values()) row.claimedUntil = 0
  }

  /** Takes the grant of another queue. */
  take(grant: KeptGrant): void {
    const row = this.#row(grant.name, grant.user)
    if (!isContinuedBy(row.grant, grant)) return
    row.grant = grant
    row.claimedUntil = 0
  }

  all(): KeptGrant[] {
    return [...this.#rows.values()]
      .flatMap(({ grant }) => (grant === null ? [] : [grant]))
      .toSorted((a, b) => compare(a.name, b.name) || compare(a.user, b.user))
  }

  #row(name: string, user: string): Row {
    const row = this.#rows.get(keyOf(name, user)) ?? { grant: null, claimedUntil: 0 }
    this.#rows.set(keyOf(name, user), row)
    return row
  }
}

const keyOf = (name: string, user: string): string => JSON.stringify([name, user])
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
