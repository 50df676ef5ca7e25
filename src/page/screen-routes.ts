/** Routes of the screens that read. Each takes the values of the API's queries and renders them. */
import type { z } from 'zod'
import { destinationDetails, destinationPage, UNKNOWN_DESTINATION } from '../queries/destinations.ts'
import { messageSession } from '../queries/messages/message-session.ts'
import { messageStory } from '../queries/messages/message-story.ts'
import { differingSettings } from '../queries/nodes.ts'
import { contentBeginning, messageCount, messagePage } from '../queries/messages.ts'
import { searchPage } from '../queries/messages/search.ts'
import type { DestinationDetailsJson } from '../resources/destination-json.ts'
import { type MessageCountJson, type MessagePageJson } from '../resources/message-json.ts'
import { queueSeries, seriesQuery } from '../queries/series-query.ts'
import { retryPlans } from '../queries/retry-plans.ts'
import { conditionShape } from '../queries/message-query.ts'
import { recordsOf } from '../queries/queue-view.ts'
import { recordedState } from '../store/destination-status.ts'
import { Problem } from '../http/problem-details.ts'
import type { Answer, Route } from '../http/route-table.ts'
import { MINUTE, SECOND, type Duration } from '../system/clock.ts'
import { checkValue } from '../presentation/checked-value.ts'
import { asSentence } from '../presentation/text.ts'
import { formatDuration, parseDuration } from '../system/duration.ts'
import type { View } from './markup/view.ts'
import { TIMELINE_SCALES } from './markup/message-timeline.ts'
import { countingScreen } from './screens/counting-screen.ts'
import { CONTENT_SECTIONS } from './markup/links.ts'
import { contentScreen } from './screens/messages/content-screen.ts'
import { causesScreen } from './screens/causes-screen.ts'
import { dialogueScreen } from './screens/messages/dialogue-screen.ts'
import { destinationScreen, restingDestinationScreen } from './screens/destination-screen.ts'
import { DESTINATION_ORDERS, destinationsScreen } from './screens/destinations-screen.ts'
import { withShownTimes } from './markup/problem-times.ts'
import { conditionsOf, filterTextOf, FILTER_PARAMETERS, type FilterText } from './screens/filter-text.ts'
import { FLOW_RANGES, flowChart, type FlowSeries } from './screens/flow-chart.ts'
import { searchScreen } from './screens/search-screen.ts'
import { messageScreen } from './screens/messages/message-screen.ts'
import { MESSAGE_ORDERS, messagesScreen } from './screens/messages-screen.ts'
import { nowScreen } from './screens/now-screen.ts'
import { plannerScreen, type PlannerQuery } from './screens/system/planner-screen.ts'
import { SENDERS_SHOWN } from './screens/senders-list.ts'
import { TEXT, texts, type AskedParameters } from './markup/screen-parameters.ts'
import { markupAnswer, orUndefined, problemOf, screenAnswer, screenRoute, type ScreenDeps, type ShownRequest } from './page-view.ts'

const ROWS_PER_PAGE = 50
/** A screen does not wait longer for counts that read much of the queue. */
const FIGURES_WITHIN: Duration = 300
/** A screen does not wait longer for a count, and shows the number counted so far. */
const COUNT_WITHIN: Duration = 100

const FLOW = { range: FLOW_RANGES } as const

const nowRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, { path: '/', parameters: FLOW }, async ({ asked, visible, signal }, view) => {
    const [now = null, series] = await Promise.all([deps.now.within(FIGURES_WITHIN, visible, signal), flowSeries(deps, asked)])
    return screenAnswer(view, nowScreen(view, { now, series }))
  })

async function flowSeries({ view }: ScreenDeps, asked: AskedParameters<typeof FLOW>): Promise<FlowSeries> {
  const range = asked.range || FLOW_RANGES[0]
  return { range, flow: await queueSeries(view, seriesQuery.parse({ since: range }), null) }
}

/** The chart of Now alone, for the script of a screen that stays open. */
const flowRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, { path: '/charts/flow', parameters: FLOW }, async ({ asked, visible, signal }, view) => {
    const [now = null, series] = await Promise.all([deps.now.within(FIGURES_WITHIN, visible, signal), flowSeries(deps, asked)])
    return markupAnswer(flowChart(view, series, now))
  })

const DESTINATIONS = { name: TEXT, order: DESTINATION_ORDERS, after: TEXT } as const

const destinationsRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, { path: '/destinations', slots: 'searches', parameters: DESTINATIONS }, async ({ asked, visible, signal }, view) => {
    if ((await deps.now.within(FIGURES_WITHIN, visible, signal)) === undefined)
      return screenAnswer(view, countingScreen(view, 'destinations', 'Destinations'))
    const order = asked.order || DESTINATION_ORDERS[0]
    const page = { order, limit: ROWS_PER_PAGE, name: orUndefined(asked.name), after: orUndefined(asked.after) }
    const { destinations, next } = await destinationPage(deps.view, page, { visible, signal })
    return screenAnswer(view, destinationsScreen(view, { destinations, next, query: { ...asked, order } }))
  })

/** Null for a destination without queued mail and without a recorded state. Rejects with every other Problem. */
const unlessUnknown = (details: Promise<DestinationDetailsJson>): Promise<DestinationDetailsJson | null> =>
  details.catch((error: unknown) => {
    if (error instanceof Problem && error.kind === UNKNOWN_DESTINATION) return null
    throw error
  })

const destinationRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, { path: '/destinations/:name', slots: 'searches' }, async ({ parameters, visible, signal }, view) => {
    const name = parameters['name'] ?? ''
    const destination = await unlessUnknown(destinationDetails(deps.view, name, visible))
    if (destination === null) return screenAnswer(view, restingDestinationScreen(view, name), 404)
    const [shown = null, senders = null] = await Promise.all([
      deps.causes.within(FIGURES_WITHIN, name, { visible, signal }),
      deps.senders.within(FIGURES_WITHIN, { destination: name, waits: true }, { visible, signal, limit: SENDERS_SHOWN }),
    ])
    const differing = await differingSettings(deps.view)
    return screenAnswer(view, destinationScreen(view, { destination, causes: shown, senders, differing }))
  })

const causesRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, { path: '/causes', slots: 'searches' }, async ({ visible, signal }, view) => {
    const records = await recordsOf(deps.view)
    const isSuspended = (name: string): boolean => recordedState(records.get(name)) === 'suspended'
    const { causes } = deps
    const sums = (await causes.sumsWithin(FIGURES_WITHIN, { visible, signal }, isSuspended)) ?? null
    return screenAnswer(view, causesScreen(view, sums, { providerOf: (name) => deps.view.policies().for(name).provider, isSuspended }))
  })

/** The first page of a filter, whose `next` is null when the page has all messages that match. */
interface FirstPage {
  readonly query: z.output<typeof conditionShape>
  readonly page: MessagePageJson
  readonly visible: string | null
}

/** Counts the messages of a filter. A first page that has all of them is not counted again: a search without a hit reads the queue once. */
const countOf = async (deps: ScreenDeps, { query, page, visible }: FirstPage, isFirst: boolean): Promise<MessageCountJson> =>
  isFirst && page.next === null
    ? { count: page.messages.length, at_least: false }
    : messageCount(deps.view, query, { visible, within: COUNT_WITHIN })

const NOTHING = { messages: [], next: null } as const

const MESSAGES = { ...FILTER_PARAMETERS, order: MESSAGE_ORDERS, after: TEXT } as const

async function messagesAnswer(
  deps: ScreenDeps,
  { asked: { after, ...asked }, visible, signal }: ShownRequest<typeof MESSAGES>,
  view: View,
): Promise<Answer> {
  const filter: FilterText = filterTextOf(asked, view)
  const order = asked.order || MESSAGE_ORDERS[0]
  const checked = checkValue(conditionShape, conditionsOf(filter))
  if (!checked.ok) {
    const facts = {
      page: NOTHING,
      filter,
      count: null,
      senders: null,
      after,
      order,
      problem: withShownTimes(problemOf(checked.invalid), view),
    }
    return screenAnswer(view, messagesScreen(view, facts), 422)
  }
  const conditions = checked.value
  const page = await messagePage(deps.view, { ...conditions, order, limit: ROWS_PER_PAGE, after: orUndefined(after) }, visible)
  const first = { query: conditions, page, visible }
  signal.throwIfAborted()
  const count = await countOf(deps, first, after === '')
  signal.throwIfAborted()
  const isCounted = after === '' && filter.sender === '' && page.messages.length > 1
  const senders = isCounted
    ? ((await deps.senders.within(COUNT_WITHIN, conditions, { visible, signal, limit: SENDERS_SHOWN })) ?? 'counting')
    : null
  return screenAnswer(view, messagesScreen(view, { page, filter, count, senders, after, order, problem: null }))
}

const messagesRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, { path: '/messages', slots: 'searches', parameters: MESSAGES }, (request, view) => messagesAnswer(deps, request, view))

/** Number of a page of a list in a screen; not a whole number for an invalid one. */
const pageIn = (asked: string): number => Number(orUndefined(asked) ?? 1)

const MESSAGE = { scale: TIMELINE_SCALES, recipients: TEXT, attempts: TEXT } as const

const messageRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, { path: '/messages/:id', parameters: MESSAGE }, async ({ parameters, asked, requester }, view) =>
    screenAnswer(
      view,
      messageScreen(view, {
        message: await messageStory(deps.view, parameters['id'] ?? '', requester),
        scale: asked.scale || TIMELINE_SCALES[0],
        pages: { recipients: pageIn(asked.recipients), attempts: pageIn(asked.attempts) },
        differing: await differingSettings(deps.view),
      }),
    ),
  )

const dialogueRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, { path: '/messages/:id/sessions/:session' }, async ({ parameters: { id = '', session = '' }, visible }, view) =>
    screenAnswer(view, dialogueScreen(view, { queueId: id, session: await messageSession(deps.view, id, session, visible) })),
  )

const CONTENT = {
  path: '/messages/:id/content',
  slots: 'searches',
  parameters: { show: CONTENT_SECTIONS.map(({ name }) => name) },
} as const

const contentRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, CONTENT, async ({ parameters: { id = '' }, asked, requester }, view) => {
    const beginning = await contentBeginning(deps.view, id, requester)
    return screenAnswer(view, contentScreen(view, { queueId: id, shown: asked.show || CONTENT_SECTIONS[0].name, beginning }))
  })

/** Lengths of outages for which the planner computes the extra wait, in seconds. */
const OUTAGES = [5, 10, 15, 30, 60, 120, 240, 480, 720, 1440, 2160, 2880, 4320, 7200].map((minutes) => (minutes * MINUTE) / SECOND)

const MOST_REPLAYED = 500

const PLANNER = texts('policy', 'other', 'minimal', 'maximal', 'lifetime', 'attempts')

const plannerRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, { path: '/planner', parameters: PLANNER }, async ({ asked, visible }, view) => {
    const { config } = deps.view.loaded()
    const shown: PlannerQuery = {
      policy: asked.policy || config.retry_backoff,
      other: asked.other,
      minimal: asked.minimal || formatDuration(config.minimal_backoff_time),
      maximal: asked.maximal || formatDuration(config.maximal_backoff_time),
      lifetime: asked.lifetime || formatDuration(config.maximal_queue_lifetime),
      attempts: asked.attempts || String(config.maximal_delivery_attempts),
    }
    const seconds = (value: string): number => (parseDuration(value) ?? Number.NaN) / SECOND
    const times = {
      minimal_backoff_time: seconds(shown.minimal),
      maximal_backoff_time: seconds(shown.maximal),
      maximal_queue_lifetime: seconds(shown.lifetime),
    }
    const facts = { query: shown, differing: await differingSettings(deps.view) }
    const refused = (problem: string) => screenAnswer(view, plannerScreen(view, { ...facts, plans: [], waiting: [], problem }))
    if (Object.values(times).some((one) => !(one >= 1 && one <= 31_536_000)))
      return refused('A time is expected, such as 300s, 5m, 2h or 1d.')
    if (!/^(?:0|[1-9]\d{0,5})$/.test(shown.attempts)) return refused('A number of attempts is expected, 0 for no limit.')
    try {
      const policies = [shown.policy, ...(shown.other === '' ? [] : [shown.other])]
      const { plans } = retryPlans({ policies, outages: OUTAGES, ...times, maximal_delivery_attempts: Number(shown.attempts) }, config)
      const { messages } = await messagePage(deps.view, { queue: 'deferred', limit: MOST_REPLAYED }, visible)
      const waiting = messages.map(({ arrival_time: at }) => Math.max(0, view.now / SECOND - at))
      return screenAnswer(view, plannerScreen(view, { ...facts, plans, waiting, problem: null }))
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      return refused(`${asSentence(error.message)}.`)
    }
  })

/** Leads from the text of the search field to the message that it names, or to a list of those that it may name. */
const searchRoute = (deps: ScreenDeps): Route =>
  screenRoute(deps, { path: '/search', slots: 'searches', parameters: texts('q', 'after') }, async (request, view) => {
    const { q, after } = request.asked
    if (q === '') return { kind: 'redirect', location: 'messages' }
    const page = await searchPage(deps.view, { q, limit: ROWS_PER_PAGE, after: orUndefined(after) }, request)
    const [only] = page.messages
    if (after === '' && only !== undefined && page.messages.length === 1 && page.next === null)
      return { kind: 'redirect', location: `messages/${encodeURIComponent(only.queue_id)}` }
    return screenAnswer(view, searchScreen(view, { asked: q, page, after }))
  })

export const screenRoutes = (deps: ScreenDeps): readonly Route[] => [
  nowRoute(deps),
  flowRoute(deps),
  destinationsRoute(deps),
  destinationRoute(deps),
  causesRoute(deps),
  messagesRoute(deps),
  messageRoute(deps),
  dialogueRoute(deps),
  contentRoute(deps),
  plannerRoute(deps),
  searchRoute(deps),
]
