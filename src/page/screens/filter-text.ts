/**
 * The filter of messages in a query: the names are those of the options of `deferd queue list`. The same names select messages in
 * the forms of operations.
 */
import { CONDITION_KEYS, MESSAGE_CONDITIONS, type ConditionKey } from '../../store/message-conditions.ts'
import { formatInstant } from '../../mail/message-times.ts'
import type { Query } from '../markup/links.ts'
import { instantIn } from '../markup/time-range.ts'
import { zonedTime } from '../markup/times.ts'
import type { View } from '../markup/view.ts'
import { texts } from '../markup/screen-parameters.ts'

/** The condition of one message has a screen instead of a field. */
type FilterKey = Exclude<ConditionKey, 'queueId'>
export type FilterName = (typeof MESSAGE_CONDITIONS)[FilterKey]['name']

const isFilterKey = (key: ConditionKey): key is FilterKey => key !== 'queueId'

/** The conditions of forms, with their labels. */
export const FILTER_FIELDS = CONDITION_KEYS.filter(isFilterKey).map((key) => MESSAGE_CONDITIONS[key])

const FILTER_NAMES: readonly FilterName[] = FILTER_FIELDS.map(({ name }) => name)

/** The conditions as parameters of a screen. */
export const FILTER_PARAMETERS = texts(...FILTER_NAMES)

/** Conditions as the operator entered them, but for instants, which are those of the API; empty for none. */
export type FilterText = Readonly<Record<FilterName, string>>

/** Local times of the form are in the zone that the page shows. */
export const filterTextOf = (given: FilterText, view: Pick<View, 'clock'>): FilterText =>
  Object.fromEntries(
    FILTER_FIELDS.map(({ name, kind }) => {
      const at = kind === 'instant' ? instantIn(given[name], view) : undefined
      return [name, at === undefined ? given[name] : formatInstant(at)]
    }),
  ) as Record<FilterName, string>

export const isAny = (filter: FilterText): boolean => FILTER_NAMES.every((name) => filter[name] === '')

export const conditionsOf = (filter: FilterText): Query & Readonly<Record<string, string>> =>
  Object.fromEntries(FILTER_NAMES.flatMap((name) => (filter[name] === '' ? [] : [[name, filter[name]]])))

export const optionsOf = (filter: FilterText): readonly string[] =>
  FILTER_NAMES.flatMap((name) => (filter[name] === '' ? [] : [`--${name.replaceAll('_', '-')}`, filter[name]]))

/** `from app@example.com, queue deferred`: the conditions for people. */
export const describedFilter = (filter: FilterText, view: Pick<View, 'clock'>): string =>
  FILTER_FIELDS.filter(({ name }) => filter[name] !== '')
    .map(({ name, words, kind }) => {
      const at = kind === 'instant' ? instantIn(filter[name], view) : undefined
      return `${words} ${at === undefined ? filter[name] : zonedTime(view, at)}`
    })
    .join(', ')

/** The conditions in a body of the API, where numbers are JSON numbers. */
export const bodyOf = (filter: FilterText): Readonly<Record<string, string | number>> =>
  Object.fromEntries(
    FILTER_FIELDS.filter(({ name }) => filter[name] !== '').map(({ name, kind }) => [
      name,
      kind === 'count' ? Number(filter[name]) : filter[name],
    ]),
  )
