/** The statements of the readers by name, in the spelling of an engine, for the tests of their plans. */
import { ANY_MESSAGE, conditionsIn, type QueueFilter } from '../../src/store/message-conditions.ts'
import { listedBy, surveyByDestination, surveyBySender, surveyOf, type ListedForm } from '../../src/store/sql/message-selection.ts'
import { termFor } from '../../src/store/search/search-terms.ts'
import * as sql from '../../src/store/sql/queue-queries.ts'
import type { Add, Query } from '../../src/store/sql/read.ts'
import type { PlaceOf, Spelling } from '../../src/store/sql/spelling.ts'

/** Filters, on which the texts of listings depend. */
const FILTERS: readonly QueueFilter[] = [
  ANY_MESSAGE,
  { ...ANY_MESSAGE, sender: 'a', arrivedBefore: 1, arrivedAfter: 1, olderThan: 1, youngerThan: 1 },
  { ...ANY_MESSAGE, recipient: 'a', destination: 'b', attemptsOver: 1, expiresWithin: 1, status: '4.7.0', reply: 'c', queue: 'deferred' },
  { ...ANY_MESSAGE, recipient: 'a', queue: 'active' },
  ...(['incoming', 'active', 'deferred', 'hold', 'corrupt', 'trash'] as const).map((queue) => ({ ...ANY_MESSAGE, queue })),
]
const AMONG: QueueFilter = { ...ANY_MESSAGE, destination: 'far.example', reply: 'busy', sender: 'a@*' }

export const RANGE = { after: 0, through: 1_000 }
export const FORMS: readonly ListedForm[] = [
  { limit: 100, newestFirst: false },
  { limit: 100, newestFirst: true },
  { limit: 100, newestFirst: true, recipients: 20 },
]

export interface EngineStatements {
  readonly spelling: Spelling
  readonly place: PlaceOf
  /** Columns of a listing. */
  readonly columns: (form: ListedForm) => string | ((add: Add) => string)
}

export function readerStatements({ spelling, place, columns }: EngineStatements): readonly (readonly [string, string])[] {
  const at = { first: 1, last: 1_000, size: 10 }
  const history = { sender: 'a', recipient: 'b', outcome: 'delivered', class: null, status: null, since: 1, until: 2 } as const
  const named: Readonly<Record<string, Query>> = {
    lastMessage: sql.lastMessage,
    nextMessage: sql.nextMessage(1),
    previousMessage: sql.previousMessage(1),
    sliceOfMessages: sql.sliceOfMessages(1, 10),
    sliceOfRecipients: sql.sliceOfRecipients(1, 10),
    recipientsAt: sql.recipientsAt(place, { ...at, newestFirst: false }),
    newestRecipientsAt: sql.recipientsAt(place, { ...at, newestFirst: true }),
    countAt: sql.countAt(place, 10),
    loadOf: sql.loadOf(place),
    scheduledAt: sql.scheduledAt(place, spelling),
    busyDestinations: sql.busyDestinations('', 10, spelling),
    expiring: sql.expiring(1, 10, spelling),
    queuesOf: sql.queuesOf([1], spelling),
    failuresBetween: sql.failuresBetween(RANGE, 'far.example', spelling),
    failuresOf: sql.failuresOf([1], spelling),
    ages: sql.ages(RANGE, ['deferred'], 10, spelling),
    countsBetween: sql.countsBetween(RANGE, spelling),
    loadsBetween: sql.loadsBetween(RANGE, spelling),
    trashCount: sql.trashCount(spelling),
    firstDeparture: sql.firstDeparture(1, spelling),
    lastDeparture: sql.lastDeparture(null),
    lastDepartureBefore: sql.lastDeparture(1),
    departures: sql.departures(history, { from: 1, before: 2, limit: 10 }, spelling),
    historyOf: sql.historyOf(1, spelling),
    placedBy: sql.placedBy(1, 1, 10),
    messagesWith: sql.messagesWith([termFor.word('a', true)], 1, 10, spelling),
    unindexedBelow: sql.unindexedBelow(1, 10),
  }
  return [
    ...Object.entries(named).map(([name, { text }]) => [name, text] as const),
    ...FILTERS.flatMap((filter) => {
      const name = `listed ${filter.queue ?? conditionsIn(filter).join()}`
      const surveyed = { filter, ids: RANGE, queues: null }
      return [
        ...FORMS.map((form) => listedBy({ filter, ids: RANGE, columns: columns(form) }, form, spelling)),
        surveyOf(surveyed, [1, 2], spelling),
        surveyByDestination(surveyed, spelling),
        surveyBySender(surveyed, spelling),
      ].map(({ text }) => [name, text] as const)
    }),
    ...FORMS.map((form) => {
      const wanted = { filter: AMONG, ids: { candidates: [1] }, columns: columns(form) }
      return ['listed among candidates', listedBy(wanted, form, spelling).text] as const
    }),
  ]
}

/** The first result of a read that needs no answers, or gets no rows. */
export function withoutRows<T>(read: Generator<unknown, T, unknown>): T {
  let step = read.next()
  while (step.done !== true) step = read.next([])
  return step.value
}
