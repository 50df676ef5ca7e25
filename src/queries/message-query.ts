/** Query parameters that select messages. They have the names of the options of `deferd queue list`. */
import { QUEUE_NAMES } from '../mail/message.ts'
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { matchesPattern, STATUS_PATTERN } from '../patterns/filter-pattern.ts'
import {
  CONDITION_KEYS,
  MESSAGE_CONDITIONS,
  exactDestination,
  filterOf,
  type ConditionKey,
  type ConditionKind,
  type GivenValues,
  type QueueFilter,
} from '../store/message-conditions.ts'
import type { Moment } from '../mail/message-times.ts'
import { parseDuration } from '../system/duration.ts'
import { wholeNumber } from './cursor.ts'
import { instantText, namedInstant, ordered } from './named-time.ts'

/** A time with its unit, in milliseconds. */
export const durationText = z
  .string()
  .refine((text) => parseDuration(text) !== undefined, 'expected a time such as 30m, 2h or 1d')
  .transform((text) => parseDuration(text) ?? 0)

const text = z.string().min(1).max(1_000)

/** An enhanced status code, or a pattern of some. */
export const statusText = text.regex(STATUS_PATTERN, 'expected a code such as 4.7.0, or a pattern such as 4.7.*')

/** Parsers of values: texts in a query, JSON values in a body. */
const VALUES: { readonly [Kind in ConditionKind]: z.ZodType<GivenValues[Kind]> } = {
  id: text.max(30),
  sender: text,
  address: text,
  destination: text,
  queue: z.enum([...QUEUE_NAMES, 'trash']),
  name: text,
  age: durationText,
  rest: durationText,
  instant: instantText,
  count: wholeNumber(0, 1_000_000_000),
  status: statusText,
  text,
}

type Shape<Key extends ConditionKey> = {
  [One in Key as (typeof MESSAGE_CONDITIONS)[One]['name']]: z.ZodOptional<z.ZodType<GivenValues[(typeof MESSAGE_CONDITIONS)[One]['kind']]>>
}

/** A member for each key, with its meaning. */
function shapeOf<Key extends ConditionKey>(
  keys: readonly Key[],
  values: Readonly<Record<ConditionKind, z.ZodType>>,
): z.ZodObject<Shape<Key>> {
  const members = keys.map((key) => {
    const { kind, name, about } = MESSAGE_CONDITIONS[key]
    return [name, values[kind].optional().describe(about)] as const
  })
  return z.strictObject(Object.fromEntries(members)) as unknown as z.ZodObject<Shape<Key>>
}

type QueryKey = Exclude<ConditionKey, 'queueId'>
const isOfQueries = (key: ConditionKey): key is QueryKey => key !== 'queueId'

/** In a query, without the condition of one message, which is a path. */
export const conditionShape = shapeOf(CONDITION_KEYS.filter(isOfQueries), VALUES).refine(...ordered('arrived'))
export type MessageQuery = z.output<typeof conditionShape>

/** In a body, numbers are JSON numbers, and instants may be. */
export const bodyConditionShape = shapeOf(CONDITION_KEYS, { ...VALUES, count: z.int().min(0), instant: namedInstant }).refine(
  ...ordered('arrived'),
)

/** True for a destination that a client may see. `pattern` is null for all. */
export const maySee = (pattern: string | null, destination: string): boolean => pattern === null || matchesPattern(pattern, destination)

/**
 * The filter of a query, limited to the destinations that the client may see. Throws Problem for a destination that a limited client may
 * not see, and for a pattern of destinations in its query.
 */
export function visibleFilter(query: MessageQuery, visible: string | null, moment: Moment): QueueFilter {
  const filter = filterOf(query, moment)
  if (visible === null) return filter
  if (filter.destination === null || filter.destination === visible) return { ...filter, destination: visible }
  const exact = exactDestination(filter)
  if (exact !== null && maySee(visible, exact)) return filter
  throw new Problem(HTTP_PROBLEMS.notPermitted, `the token is limited to the destinations ${visible}: name one of them, or none`)
}
