/**
 * Groups of queued recipients by destination and cause of their last failure. A reader counts one slice of the queue at a time;
 * the caller adds the slices up with `CauseGroups`.
 */
import { causeOf } from '../../mail/failure-cause.ts'
import { messageOf, queueIdOf, type DestinationName, type Message, type RecipientId } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { QueueTime } from '../../system/clock.ts'

/** `rare`: the remainder beyond a maximum number of groups. */
type CauseKind = 'failed' | 'untried' | 'rare'

/** Recipients with the same cause at one destination, of mail that waits or of mail on hold. */
export interface CauseGroup {
  readonly destination: DestinationName
  readonly kind: CauseKind
  /** True for mail on hold. */
  readonly isHeld: boolean
  /** Null unless the kind is `failed`. */
  readonly cause: string | null
  readonly recipients: number
  /** Time of the earliest known attempt of these recipients that had this cause; null when none is known. */
  readonly since: QueueTime | null
  /** Time of the latest attempt of these recipients; null when none is known. */
  readonly last: QueueTime | null
  /** The recipient that was tried last; null when `cause` is null. */
  readonly example: { readonly queueId: string; readonly address: string; readonly status: DeliveryStatus } | null
}

/** A queued recipient with its last failure, as `CauseGroups.count` takes them. */
export interface QueuedFailure {
  readonly id: RecipientId
  readonly createdAt: Message['createdAt']
  readonly destination: DestinationName
  /** True for mail on hold. */
  readonly isHeld: boolean
  readonly address: string
  /** Null for a recipient that was not tried yet. */
  readonly last: DeliveryStatus | null
  readonly lastAt: QueueTime | null
  readonly first: { readonly at: QueueTime; readonly status: () => DeliveryStatus | null } | null
}

/**
 * Selects the next `size` recipients with ids above `after`. When `destination` is not null, only those of them at this destination
 * are counted.
 */
export interface CausePage {
  readonly after: RecipientId
  readonly size: number
  readonly destination: DestinationName | null
}

export interface CauseSlice {
  /** Id of the last recipient of the slice, counted or not; null when no recipient has an id above `after`. */
  readonly through: RecipientId | null
  readonly groups: readonly CauseGroup[]
}

/**
 * Number of groups from which on a further cause of a destination is counted as rare. A remote server that writes a different text into
 * each reply must not exhaust the memory.
 */
const MAX_GROUPS = 4_096
/** Causes that each destination has beside that limit: with many destinations, the last of them are no rarer than the first. */
const CAUSES_OF_EACH = 4

const least = (a: QueueTime | null, b: QueueTime | null): QueueTime | null => (a === null ? b : b === null ? a : Math.min(a, b))

/** The sum of two groups that differ in their destination only, or in nothing. */
export function merged(one: CauseGroup, other: CauseGroup): CauseGroup {
  const isLater = (other.last ?? -Infinity) > (one.last ?? -Infinity)
  return {
    ...one,
    recipients: one.recipients + other.recipients,
    since: least(one.since, other.since),
    last: isLater ? other.last : one.last,
    example: isLater ? other.example : one.example,
  }
}

export class CauseGroups {
  readonly #groups = new Map<string, CauseGroup>()
  /** Number of groups of each destination. */
  readonly #causes = new Map<DestinationName, number>()

  add(group: CauseGroup): void {
    const { destination } = group
    const full =
      this.#groups.size >= MAX_GROUPS && (this.#causes.get(destination) ?? 0) >= CAUSES_OF_EACH && !this.#groups.has(keyOf(group))
    const counted = full ? rareOf(group) : group
    const known = this.#groups.get(keyOf(counted))
    if (known === undefined) this.#causes.set(destination, (this.#causes.get(destination) ?? 0) + 1)
    this.#groups.set(keyOf(counted), known === undefined ? counted : merged(known, counted))
  }

  /**
   * Counts one recipient. A queue may hold a million failures, so `example` and `since` are computed only when the recipient may
   * change them.
   */
  count(failure: QueuedFailure): void {
    const { destination, isHeld, last } = failure
    const untried = { destination, kind: 'untried', isHeld, cause: null, recipients: 1, since: null, last: null, example: null } as const
    if (last === null) return this.add(untried)
    const cause = causeOf(last)
    const group = { ...untried, kind: 'failed', cause } as const
    const known = this.#groups.get(keyOf(group))
    const isLater = known === undefined || (failure.lastAt ?? -Infinity) > (known.last ?? -Infinity)
    const example = isLater ? exampleOf(failure, last) : known.example
    this.add({ ...group, since: sinceOf(failure, cause, known?.since ?? Infinity), last: failure.lastAt, example })
  }

  /** The groups, unordered. */
  get all(): readonly CauseGroup[] {
    return [...this.#groups.values()]
  }
}

/** The group as one of the remainder. */
export const rareOf = <Group extends CauseGroup>(group: Group): Group => ({
  ...group,
  kind: 'rare',
  cause: null,
  since: null,
  last: null,
  example: null,
})

const exampleOf = ({ id, createdAt, address }: QueuedFailure, status: DeliveryStatus): CauseGroup['example'] => ({
  queueId: queueIdOf({ id: messageOf(id), createdAt }),
  address,
  status,
})

/**
 * Returns the time of the first attempt of the recipient when that attempt is earlier than `known` and had the same cause, else the
 * time of its last attempt.
 */
function sinceOf({ first, lastAt }: QueuedFailure, cause: string, known: QueueTime): QueueTime | null {
  if (first === null || first.at >= known || first.at === lastAt) return lastAt
  const status = first.status()
  return status !== null && causeOf(status) === cause ? first.at : lastAt
}

const keyOf = ({ destination, kind, isHeld, cause }: Pick<CauseGroup, 'destination' | 'kind' | 'isHeld' | 'cause'>): string =>
  `${destination}\n${kind}\n${isHeld}\n${cause ?? ''}`
