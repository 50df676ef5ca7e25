/** Selection of events by type, destination and sender. */
import { addressMatcher, addressPattern, patternMatcher } from '../patterns/filter-pattern.ts'
import { EVENT_TYPES, type EventType } from './event-types.ts'
import { valueOf } from './event-values.ts'
import type { NewEvent } from './kept-event.ts'

/** Lists of filter patterns (patterns/filter-pattern.ts). An empty list selects everything. */
export interface EventFilter {
  /** Patterns of types, such as `recipient.*`. */
  readonly types: readonly string[]
  /** Patterns of destinations. An event without a destination is not selected by a list. */
  readonly destinations: readonly string[]
  /** Patterns of envelope senders. An event without a sender is not selected by a list. */
  readonly senders: readonly string[]
}

export const ANY_EVENT: EventFilter = { types: [], destinations: [], senders: [] }

/** Returns a predicate that selects events, with the patterns compiled. */
export function eventSelector({ types, destinations, senders }: EventFilter): (event: Pick<NewEvent, 'type' | 'data'>) => boolean {
  const wanted = new Set(selectedTypes(types))
  const [toDestination, fromSender] = [anyOf(destinations), anyOf(senders.map(addressPattern), addressMatcher)]
  if (toDestination === undefined && fromSender === undefined) return ({ type }) => wanted.has(type)
  return (event) => wanted.has(event.type) && isSelected(toDestination, event, 'destination') && isSelected(fromSender, event, 'sender')
}

/** The types that a list of patterns selects. */
export function selectedTypes(patterns: readonly string[]): readonly EventType[] {
  const wanted = anyOf(patterns)
  return wanted === undefined ? EVENT_TYPES : EVENT_TYPES.filter(wanted)
}

function isSelected(matches: TextPredicate | undefined, event: Pick<NewEvent, 'type' | 'data'>, name: 'destination' | 'sender'): boolean {
  if (matches === undefined) return true
  const value = valueOf(event, name)
  return typeof value === 'string' && matches(value)
}

type TextPredicate = (text: string) => boolean

/** A predicate of the texts that one of the patterns matches; undefined without patterns. */
function anyOf(patterns: readonly string[], matcher: (pattern: string) => TextPredicate = patternMatcher): TextPredicate | undefined {
  if (patterns.length === 0) return undefined
  const matchers = patterns.map(matcher)
  return (text) => matchers.some((matches) => matches(text))
}
