/**
 * The filter of messages in a query: the names are those of the options of `deferd queue list`. The same names select messages in
 * the forms of operations.
 */
import type { Query } from '../markup/links.ts'

export const FILTER_NAMES = [
  'sender',
  'recipient',
  'destination',
  'queue',
  'older_than',
  'younger_than',
  'attempts_over',
  'status',
  'reply',
] as const
export type FilterName = (typeof FILTER_NAMES)[number]

/** Conditions as the operator entered them; empty for none. */
export type FilterText = Readonly<Record<FilterName, string>>

export const filterOf = (query: URLSearchParams): FilterText =>
  Object.fromEntries(FILTER_NAMES.map((name) => [name, query.get(name)?.trim() ?? ''])) as Record<FilterName, string>

/** Parameters of a query that are neither conditions nor `besides`. With them, a filter selects other mail than was asked for. */
export const unknownIn = (query: URLSearchParams, besides: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries([...query].filter(([name]) => !isFilterName(name) && !besides.includes(name)))

const isFilterName = (name: string): name is FilterName => FILTER_NAMES.some((one) => one === name)

export const isAny = (filter: FilterText): boolean => FILTER_NAMES.every((name) => filter[name] === '')

/** The conditions that are set. */
export const conditionsOf = (filter: FilterText): Query & Readonly<Record<string, string>> =>
  Object.fromEntries(FILTER_NAMES.flatMap((name) => (filter[name] === '' ? [] : [[name, filter[name]]])))

/** The conditions as options of a command. */
export const optionsOf = (filter: FilterText): readonly string[] =>
  FILTER_NAMES.flatMap((name) => (filter[name] === '' ? [] : [`--${name.replaceAll('_', '-')}`, filter[name]]))

const WORDS: Readonly<Record<FilterName, string>> = {
  sender: 'from',
  recipient: 'to',
  destination: 'destination',
  queue: 'queue',
  older_than: 'older than',
  younger_than: 'younger than',
  attempts_over: 'attempts over',
  status: 'status',
  reply: 'reply contains',
}

/** `from app@example.com, queue deferred`: the conditions for people. */
export const describedFilter = (filter: FilterText): string =>
  FILTER_NAMES.filter((name) => filter[name] !== '')
    .map((name) => `${WORDS[name]} ${filter[name]}`)
    .join(', ')
