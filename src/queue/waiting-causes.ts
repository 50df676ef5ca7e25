/**
 * Causes for which mail waits, by destination and summed over destinations, each with the filter that selects its recipients in
 * operations. Commands, and other views of the queue, are made from it.
 */
import { PLACEHOLDER } from '../mail/failure-cause.ts'
import type { DestinationName } from '../mail/message.ts'
import { CauseGroups, merged, rareOf, type CauseGroup } from '../store/counts/cause-groups.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { matchesReply, type QueueFilter } from '../store/message-conditions.ts'

interface Selectable {
  /** Conditions that select these recipients; null when they have no cause. */
  readonly filter: Pick<QueueFilter, 'destination' | 'queue' | 'reply'> | null
  /** False when the filter also selects other recipients. */
  readonly isExact: boolean
}

/** A group of recipients with the same cause at one destination. */
export interface WaitingCause extends CauseGroup, Selectable {}

/** Recipients with the same cause at all destinations. */
export interface SummedCause extends Omit<CauseGroup, 'destination'>, Selectable {
  /** Those with the most of these recipients first. */
  readonly destinations: readonly DestinationName[]
}

/** Recipients per slice. A slice takes some milliseconds. */
const SLICE = 5_000
/** Maximum length in characters of a part of a cause after it is cut for the filter. */
const LONGEST = 48
/** Minimum length in characters of a part of a cause that is used as a filter. */
const SHORTEST = 6
/** Length in characters from which on people recognize a cause by a part of it. */
const RECOGNIZED = 16
/** Maximum number of summed causes; the further ones are one of the kind `rare`. */
const MOST_SUMS = 100

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
    .map((group) => ({ ...group, ...selectionOf(group, group.destination, byDestination.get(group.destination) ?? []) }))
    .toSorted((a, b) => b.recipients - a.recipients || compare(a.destination, b.destination) || compare(a.cause ?? '', b.cause ?? ''))
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** The causes summed over destinations, those with the most recipients first. */
export function summedCauses(causes: readonly WaitingCause[]): readonly SummedCause[] {
  const named = sumsOf(causes).filter(({ kind }) => kind === 'failed')
  const kept = new Set(named.slice(0, MOST_SUMS).map(keyOf))
  const sums = sumsOf(causes.map((one) => (one.kind !== 'failed' || kept.has(keyOf(one)) ? one : rareOf(one))))
  return sums.map((sum) => {
    const [only = null, ...others] = sum.destinations
    return { ...sum, ...selectionOf(sum, others.length === 0 ? only : null, sums) }
  })
}

type Sum = Omit<SummedCause, keyof Selectable>

const keyOf = ({ kind, isHeld, cause }: Pick<CauseGroup, 'kind' | 'isHeld' | 'cause'>): string => JSON.stringify([kind, isHeld, cause])

function sumsOf(causes: readonly CauseGroup[]): readonly Sum[] {
  const sums = [...Map.groupBy(causes, keyOf).values()].map((those) => {
    const destinations = [...new Set(those.map(({ destination }) => destination))]
    const { destination: _, ...sum } = those.reduce(merged)
    return { ...sum, destinations }
  })
  return sums.toSorted((a, b) => b.recipients - a.recipients || compare(a.cause ?? '', b.cause ?? ''))
}

/** Selects a cause among its neighbours: at a destination, or at all of them for null. */
function selectionOf(
  { isHeld, cause, example }: Sum | CauseGroup,
  destination: DestinationName | null,
  neighbours: readonly (Sum | CauseGroup)[],
): Selectable {
  if (cause === null || example === null) return { filter: null, isExact: true }
  // A filter without a queue selects mail on hold as well.
  const others = neighbours.filter((one) => one.example !== null && (!isHeld || one.isHeld))
  const selects = (reply: string, those: readonly (Sum | CauseGroup)[]): boolean =>
    those.some((one) => one.example !== null && matchesReply(reply, one.example.status))
  const foreign = others.filter((one) => one.cause !== cause)
  const candidates = [...parts(cause), wholePattern(cause)].filter((reply) => matchesReply(reply, example.status))
  const reply = candidates.find((one) => !selects(one, foreign)) ?? candidates.at(-1) ?? wholePattern(cause)
  const isExact = !selects(reply, foreign) && !others.some((one) => one.cause === cause && one.isHeld !== isHeld)
  return { filter: { destination, queue: isHeld ? 'hold' : null, reply }, isExact }
}

/**
 * Literal parts of a cause: the first one that people can recognize it by, such as `421 4.7.28 Gmail has detected an unusual rate`, then the
 * longest first. A part of more than LONGEST characters appears twice: cut between words, then whole.
 */
function parts(cause: string): readonly string[] {
  const literal = cause
    .split(/[*…]/)
    .flatMap((part) => part.split(PLACEHOLDER))
    .map((part) => part.replaceAll(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ''))
    .filter((part) => part.length >= SHORTEST)
  const recognized = literal.findIndex((part) => part.length >= RECOGNIZED)
  const first = literal.slice(recognized, recognized + 1)
  const others = literal.filter((_, n) => n !== recognized).toSorted((a, b) => b.length - a.length)
  return [...first, ...others].flatMap((part) => (part.length > LONGEST ? [cut(part), part] : [part]))
}

const cut = (part: string): string => {
  const end = part.lastIndexOf(' ', LONGEST)
  return part.slice(0, end < SHORTEST ? LONGEST : end)
}

/** Pattern of the whole reply. The `*` at the beginning makes the text a pattern even when the cause has no placeholder. */
const wholePattern = (cause: string): string => `*${cause.split(PLACEHOLDER).join('*')}`.replace(/…$/, '*').replaceAll(/\*{2,}/g, '*')
