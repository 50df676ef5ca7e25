/**
 * The conditions by which messages are selected. Options of commands, queries and bodies of the API, forms of the page, words of the audit
 * log and the shapes of requests are made of this table. A new condition is a row here, and its meaning in each engine and in the
 * listing of the maildrop.
 */
import { withALabels } from '../mail/address.ts'
import type { DestinationName, QueueName } from '../mail/message.ts'
import { NAMED_INSTANT, type Moment } from '../mail/message-times.ts'
import { parseReply, type DeliveryStatus } from '../mail/smtp-reply.ts'
import { addressPattern, partPattern, patternMatcher } from '../patterns/filter-pattern.ts'
import type { Duration, QueueTime, WallTime } from '../system/clock.ts'

/** A kind of condition, with the type of the value that an operator gives. */
export interface GivenValues {
  readonly id: string
  readonly sender: string
  readonly address: string
  readonly destination: string
  readonly queue: QueueName | 'trash'
  readonly name: string
  /** The time since the arrival. */
  readonly age: Duration
  /** The time that is left. */
  readonly rest: Duration
  readonly instant: WallTime
  readonly count: number
  readonly status: string
  readonly text: string
}
export type ConditionKind = keyof GivenValues

/** The type of the value in a filter: that of the given one, but for times, which become instants on the queue's clock. */
export type FilterValue<Kind extends ConditionKind> = Kind extends 'age' | 'rest' | 'instant' ? QueueTime : GivenValues[Kind]

interface Condition {
  readonly kind: ConditionKind
  /** Name in queries and bodies; the option of commands has hyphens. */
  readonly name: string
  /** Placeholder of the option. */
  readonly argument: string
  /** Meaning, for help texts. */
  readonly about: string
  /** Label of the field in a form. */
  readonly label: string
  /** Words before the value in a sentence. */
  readonly words: string
  /** Example of a value. */
  readonly example: string
}

export const MESSAGE_CONDITIONS = {
  queueId: {
    kind: 'id',
    name: 'queue_id',
    argument: 'id',
    about: 'queue id of the message',
    label: 'Queue id',
    words: 'queue id',
    example: '4d1CsX0Yz1zB',
  },
  /** The null sender is the empty text in a filter. */
  sender: {
    kind: 'sender',
    name: 'sender',
    argument: 'address',
    about: 'envelope sender; * matches any text, <> is the null sender',
    label: 'Sender',
    words: 'from',
    example: '*@example.com',
  },
  recipient: {
    kind: 'address',
    name: 'recipient',
    argument: 'address',
    about: 'a recipient without a final outcome; * matches any text',
    label: 'Recipient',
    words: 'to',
    example: 'ann@example.com',
  },
  destination: {
    kind: 'destination',
    name: 'destination',
    argument: 'name',
    about: 'destination of a recipient, as in `deferd destination list`; * matches any text',
    label: 'Destination',
    words: 'destination',
    example: 'example.com',
  },
  /** Null in a filter matches every queue except the trash. */
  queue: {
    kind: 'queue',
    name: 'queue',
    argument: 'name',
    about: 'queue that holds the message',
    label: 'Queue',
    words: 'queue',
    example: 'deferred',
  },
  class: {
    kind: 'name',
    name: 'class',
    argument: 'name',
    about: 'class of the message: the name of a [class.NAME] table',
    label: 'Class',
    words: 'class',
    example: 'bulk',
  },
  arrivedAfter: {
    kind: 'instant',
    name: 'arrived_after',
    argument: 'time',
    about: `arrived at this time or later: ${NAMED_INSTANT}`,
    label: 'Arrived from',
    words: 'arrived from',
    example: '2026-11-24T08:00:00Z',
  },
  arrivedBefore: {
    kind: 'instant',
    name: 'arrived_before',
    argument: 'time',
    about: `arrived before this time: ${NAMED_INSTANT}`,
    label: 'Arrived to',
    words: 'arrived before',
    example: '2026-11-24T09:00:00Z',
  },
  olderThan: {
    kind: 'age',
    name: 'older_than',
    argument: 'time',
    about: 'arrived longer ago than this: 30m, 2h, 1d',
    label: 'Older than',
    words: 'older than',
    example: '2h',
  },
  youngerThan: {
    kind: 'age',
    name: 'younger_than',
    argument: 'time',
    about: 'arrived less long ago than this: 30m, 2h, 1d',
    label: 'Younger than',
    words: 'younger than',
    example: '1d',
  },
  expiresWithin: {
    kind: 'rest',
    name: 'expires_within',
    argument: 'time',
    about: 'the lifetime of a waiting recipient ends within this time: 30m, 2h, 1d',
    label: 'Expires within',
    words: 'expires within',
    example: '1h',
  },
  attemptsOver: {
    kind: 'count',
    name: 'attempts_over',
    argument: 'n',
    about: 'more attempts for a recipient than this number',
    label: 'Attempts over',
    words: 'attempts over',
    example: '5',
  },
  /** Pattern of the enhanced status code (RFC 3463) of a live recipient's last attempt, or of the reply to it. They differ where a refused login is retried. */
  status: {
    kind: 'status',
    name: 'status',
    argument: 'code',
    about: 'enhanced status code of the last attempt of a recipient, or of the reply to it: 4.7.0; * matches any text',
    label: 'Status',
    words: 'status',
    example: '4.7.*',
  },
  /** Case-insensitive. A text with `*` is a pattern of the whole reply or reason. */
  reply: {
    kind: 'text',
    name: 'reply',
    argument: 'text',
    about:
      'text in the last reply or reason of the own attempts of a recipient, not in the failure of a dead destination for which it waits',
    label: 'Reply contains',
    words: 'reply contains',
    example: '421 4.7.0',
  },
} as const satisfies Readonly<Record<string, Condition>>

type Conditions = typeof MESSAGE_CONDITIONS
export type ConditionKey = keyof Conditions

/**
 * Conditions on messages, all of which must hold. A null key is no condition. Every key is required: an omitted condition would let an
 * operation such as a deletion match all mail.
 */
export type QueueFilter = { readonly [Key in ConditionKey]: FilterValue<Conditions[Key]['kind']> | null }

/** Conditions as an operator gives them, by their names. */
export type GivenConditions = {
  readonly [Key in ConditionKey as Conditions[Key]['name']]?: GivenValues[Conditions[Key]['kind']] | undefined
}

export const CONDITION_KEYS = Object.keys(MESSAGE_CONDITIONS) as readonly ConditionKey[]

/** A value for each key. `of` returns the type that belongs to the key. */
const filterBy = (of: (key: ConditionKey) => unknown): QueueFilter =>
  Object.fromEntries(CONDITION_KEYS.map((key) => [key, of(key)])) as unknown as QueueFilter

/** The filter without conditions: it matches all mail except the trash. */
export const ANY_MESSAGE: QueueFilter = filterBy(() => null)

const nullSender = (address: string): string => (address === '<>' || address.toLowerCase() === 'mailer-daemon' ? '' : address)

/** Pattern of an envelope sender that an operator names. */
export const senderPattern = (address: string): string => addressPattern(nullSender(address))

const VALUES: { readonly [Kind in ConditionKind]: (given: GivenValues[Kind], moment: Moment) => FilterValue<Kind> } = {
  id: (id) => id,
  sender: senderPattern,
  address: addressPattern,
  destination: (name) => withALabels(name.toLowerCase()),
  queue: (name) => name,
  name: (name) => name,
  age: (age, { now }) => now - age,
  rest: (rest, { now }) => now + rest,
  instant: (at, { wall }) => wall.queueTime(at),
  count: (count) => count,
  status: (code) => code,
  text: (text) => text,
}

function valueOf<Kind extends ConditionKind>(kind: Kind, given: GivenValues[Kind] | undefined, moment: Moment): FilterValue<Kind> | null {
  return given === undefined ? null : VALUES[kind](given, moment)
}

/** The filter of conditions. Ages and spans are counted from `moment.now`. */
export const filterOf = (given: GivenConditions, moment: Moment): QueueFilter =>
  filterBy((key) => {
    const { kind, name } = MESSAGE_CONDITIONS[key]
    return valueOf(kind, given[name], moment)
  })

const isKey = (key: string): key is ConditionKey => key in MESSAGE_CONDITIONS

/** Returns the keys that hold a condition. Throws at an unknown key, because ignoring a condition would match too much mail. */
export function conditionsIn(filter: QueueFilter): readonly ConditionKey[] {
  const given = Object.entries(filter).filter(([, value]) => value !== null)
  return given.map(([key]) => {
    if (isKey(key)) return key
    throw new Error(`a queue cannot be filtered by ${key}`)
  })
}

/** True when the filter has a condition. A filter without conditions matches all mail. */
export const isFiltered = (filter: QueueFilter): boolean => conditionsIn(filter).length > 0

/** The destination that a filter names exactly, in lower case; null when the filter names none or has a pattern. */
export const exactDestination = ({ destination }: QueueFilter): DestinationName | null =>
  destination === null || destination.includes('*') ? null : destination.toLowerCase()

/** Whether the last status of a recipient meets `pattern`, the condition `status` of a filter. */
export function matchesStatus(pattern: string, { status, reply }: Pick<DeliveryStatus, 'status' | 'reply'>): boolean {
  const matches = patternMatcher(pattern)
  const replied = reply === undefined ? undefined : parseReply(reply)?.status
  return matches(status) || (replied !== undefined && matches(replied))
}

/** Whether the last status of a recipient meets `text`, the condition `reply` of a filter. */
export function matchesReply(text: string, { reply, reason }: Pick<DeliveryStatus, 'reply' | 'reason'>): boolean {
  const matches = patternMatcher(partPattern(text))
  return matches(reason) || (reply !== undefined && matches(reply))
}
