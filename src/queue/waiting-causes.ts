/**
 * Causes for which mail waits, by destination, each with the filter that selects its recipients in operations. Commands, and other
 * views of the queue, are made from it.
 */
import { PLACEHOLDER } from '../mail/failure-cause.ts'
import type { DestinationName } from '../mail/message.ts'
import { CauseGroups, type CauseGroup } from '../store/cause-groups.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { matchesReply, type QueueFilter } from '../store/message-conditions.ts'

/** A group of recipients with the same cause at one destination. */
export interface WaitingCause extends CauseGroup {
  /** Conditions that select these recipients; null when they have no cause. */
  readonly filter: Pick<QueueFilter, 'destination' | 'reply'> | null
  /** False when the filter also selects recipients with another cause. */
  readonly isExact: boolean
}

/** Recipients per slice. A slice takes some milliseconds. */
const SLICE = 5_000
/** Maximum length in characters of a part of a cause after it is cut for the filter. */
const LONGEST = 48
/** Minimum length in characters of a part of a cause that is used as a filter. */
const SHORTEST = 6

/**
 * Reads the whole queue and returns the causes, those with the most recipients first; only those of `destination` unless it is
 * null. Rejects when `signal` aborts.
 */
export async function waitingCauses(
  reader: QueueReader,
  destination: DestinationName | null,
  signal?: AbortSignal,
): Promise<readonly WaitingCause[]> {
  const groups = new CauseGroups()
  for (let after: number | null = 0; after !== null;) {
    signal?.throwIfAborted()
    const slice = await reader.causes({ after, size: SLICE, destination })
    for (const group of slice.groups) groups.add(group)
    after = slice.through
  }
  const byDestination = Map.groupBy(groups.all, (group) => group.destination)
  return groups.all
    .map((group) => withFilter(group, byDestination.get(group.destination) ?? []))
    .toSorted((a, b) => b.recipients - a.recipients || compare(a.destination, b.destination) || compare(a.cause ?? '', b.cause ?? ''))
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function withFilter(group: CauseGroup, neighbours: readonly CauseGroup[]): WaitingCause {
  const { destination, cause, example } = group
  if (cause === null || example === null) return { ...group, filter: null, isExact: true }
  const others = neighbours.filter((one) => one.cause !== cause && one.example !== null)
  const isExact = (reply: string) => !others.some((one) => one.example !== null && matchesReply(reply, one.example.status))
  const candidates = [...parts(cause), wholePattern(cause)].filter((reply) => matchesReply(reply, example.status))
  const reply = candidates.find(isExact) ?? candidates.at(-1) ?? wholePattern(cause)
  return { ...group, filter: { destination, reply }, isExact: isExact(reply) }
}

/**
 * Literal parts of a cause, the longest first. A part of more than LONGEST characters appears twice: cut between words, then whole.
 */
function parts(cause: string): readonly string[] {
  const literal = cause
    .split(/[*…]/)
    .flatMap((part) => part.split(PLACEHOLDER))
    .map((part) => part.trim())
    .filter((part) => part.length >= SHORTEST)
    .toSorted((a, b) => b.length - a.length)
  return literal.flatMap((part) => (part.length > LONGEST ? [cut(part), part] : [part]))
}

const cut = (part: string): string => {
  const end = part.lastIndexOf(' ', LONGEST)
  return part.slice(0, end < SHORTEST ? LONGEST : end)
}

/** Pattern of the whole reply. The `*` at the beginning makes the text a pattern even when the cause has no placeholder. */
const wholePattern = (cause: string): string => `*${cause.split(PLACEHOLDER).join('*')}`.replace(/…$/, '*').replaceAll(/\*{2,}/g, '*')
