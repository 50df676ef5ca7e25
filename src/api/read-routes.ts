/** Routes of the API that read. */
import { z } from 'zod'
import { defaultConfig } from '../config/load.ts'
import { OPTIONS, type Config, type OptionName } from '../config/options.ts'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import type { Answer } from '../http/route-table.ts'
import {
  accepts,
  apiRoute,
  assertUnlimited,
  json,
  page,
  pageCursor,
  pageLimit,
  viewerOf,
  type ApiRequest,
  type ApiRoute,
} from './api-route.ts'
import { Causes } from './queries/causes.ts'
import { destinationDetails, destinationLines, destinationPage, UNKNOWN_DESTINATION } from './queries/destinations.ts'
import { messageStory } from './queries/message-story.ts'
import { contentOf, messageCount, messageLines, messagePage, NO_CONTENT, UNKNOWN_MESSAGE } from './queries/messages.ts'
import type { Now } from './queries/now.ts'
import type { QueueView } from './queries/queue-view.ts'
import { historyLines, historyPage, SERIES, trafficSeries, type SeriesSpan } from './queries/departed-mail.ts'
import { retryPlans } from './queries/retry-plans.ts'
import * as destinationShapes from './values/destination-shapes.ts'
import * as statusShapes from './values/status-shapes.ts'
import * as storyShapes from './values/story-shapes.ts'
import * as messageShapes from './values/message-shapes.ts'
import { CURSOR_PROBLEM } from './values/cursor.ts'
import { conditionShape, durationText } from './values/message-query.ts'

export interface ReadDeps {
  readonly view: QueueView
  readonly now: Now
  readonly causes: Causes
}

const NDJSON = 'application/x-ndjson'
const SMALL_BODY = 64 * 1024

const address = z.string().min(1).max(1_000).optional()

const wantsLines = (request: ApiRequest<unknown, unknown>): boolean => accepts(request, NDJSON)

const lines = (chunks: AsyncIterable<Uint8Array>): Answer => ({ kind: 'stream', contentType: NDJSON, chunks })

const contentQuery = z.strictObject({ part: z.enum(['all', 'header', 'body']).default('all') })

/** Times that a request may name, up to a year. */
const seconds = z.number().min(0).max(31_536_000)

const planBody = z.strictObject({
  policies: z.array(z.string().min(1).max(1_000)).min(1).max(4).optional().describe('one to four values as of `retry_backoff`'),
  minimal_backoff_time: seconds.min(1).optional().describe('in seconds, as all times here'),
  maximal_backoff_time: seconds.min(1).optional(),
  maximal_queue_lifetime: seconds.optional(),
  retry_jitter: z.number().min(0).max(1).optional(),
  outages: z.array(seconds.min(1)).max(20).optional().describe('lengths of outages of which the consequences are computed'),
  seed: z.int().min(0).optional().describe('seed of the random draws of policies that have them'),
})

const NAMES = Object.keys(OPTIONS).toSorted() as OptionName[]

function configuration({ loaded }: QueueView) {
  const { written, writtenTables, writtenDkim, writtenEvents, writtenOauth, given, file } = loaded()
  const defaults = defaultConfig()
  const tables = (all: ReadonlyMap<string, ReadonlyMap<string, string>>) =>
    Object.fromEntries([...all].map(([heading, table]) => [heading, Object.fromEntries(table)]))
  return {
    file,
    parameters: NAMES.map((name: keyof Config & OptionName) => ({
      name,
      value: written.get(name) ?? '',
      default: defaults.written.get(name) ?? '',
      given: given.has(name),
    })),
    destinations: tables(writtenTables),
    dkim: tables(writtenDkim),
    events: tables(writtenEvents),
    oauth: tables(writtenOauth),
  }
}

function nowRoutes({ view, now }: ReadDeps): readonly ApiRoute[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/now',
      role: 'viewer',
      summary: 'State of the queue now',
      about:
        'The members of `deferd status --json`, with the name of the server, the oldest message, and the messages by age. Figures are at most some seconds old; the ages have a time of their own.',
      answers: { 200: { about: 'the state', shape: statusShapes.now } },
      handler: async ({ requester }) => json(await now.value(requester.destinations)),
    }),
    apiRoute({
      method: 'GET',
      path: '/now/stream',
      role: 'viewer',
      summary: 'State of the queue, once a second',
      about: 'Server-sent events named `now`, each with the value of `GET /now`.',
      answers: { 200: { about: 'events', type: 'text/event-stream', shape: statusShapes.now } },
      problems: [HTTP_PROBLEMS.busy],
      handler: ({ requester }) => ({ kind: 'events', subscribe: (send) => now.subscribe(requester.destinations, send) }),
    }),
    apiRoute({
      method: 'GET',
      path: '/now/series',
      role: 'viewer',
      summary: 'Traffic in intervals',
      query: z.strictObject({ span: z.enum(Object.keys(SERIES) as [SeriesSpan, ...SeriesSpan[]]).default('60min') }),
      answers: { 200: { about: 'recipients per interval, exact over all nodes', shape: statusShapes.series } },
      handler: async ({ query }) => json(await trafficSeries(view, query.span)),
    }),
  ]
}

function messageRoutes({ view }: ReadDeps): readonly ApiRoute[] {
  const listQuery = conditionShape.extend({
    order: z.enum(['oldest', 'newest']).default('oldest'),
    limit: pageLimit,
    after: pageCursor,
  })
  return [
    apiRoute({
      method: 'GET',
      path: '/messages',
      role: 'viewer',
      summary: 'Messages, oldest or newest first',
      about:
        'Conditions are those of `deferd queue list`; a message must match all of them. The pages of a listing contain no message that arrived after the first page was read, and a message that stays in the queue is listed exactly once. With `Accept: application/x-ndjson`, all messages as the lines of `deferd queue list --json`.',
      query: listQuery,
      headers: { Accept: 'application/json, or application/x-ndjson for all messages' },
      answers: {
        200: [
          { about: 'a page', shape: messageShapes.messagePage },
          { about: 'all messages', type: NDJSON, shape: messageShapes.messageLine },
        ],
      },
      problems: [CURSOR_PROBLEM],
      slots: 'searches',
      handler: async (request) => {
        const { limit: most, after, order, ...conditions } = request.query
        if (wantsLines(request)) return lines(messageLines(view, conditions, viewerOf(request)))
        return page(
          await messagePage(view, { ...conditions, order, limit: most, after }, request.requester.destinations),
          request.written,
          'after',
        )
      },
    }),
    apiRoute({
      method: 'GET',
      path: '/messages/count',
      role: 'viewer',
      summary: 'Number of messages',
      about: 'Counting ends at 100,000 messages and after 200 ms; `at_least` is then true.',
      query: conditionShape,
      answers: { 200: { about: 'the count', shape: messageShapes.messageCount } },
      slots: 'searches',
      handler: async (request) => json(await messageCount(view, request.query, { visible: request.requester.destinations })),
    }),
    apiRoute({
      method: 'GET',
      path: '/messages/:id',
      role: 'viewer',
      summary: 'One message with its attempts and its future',
      about:
        'The members of `deferd queue show --json`, with the client that sent the message, the last operations on it, and the attempts that each recipient will get while it stays deferred. Also for a message that has left the queue, for `history_retention`.',
      answers: { 200: { about: 'the message', shape: storyShapes.messageStory } },
      problems: [UNKNOWN_MESSAGE],
      handler: async ({ parameters, requester }) => json(await messageStory(view, parameters['id'] ?? '', requester)),
    }),
    apiRoute({
      method: 'GET',
      path: '/messages/:id/content',
      role: 'viewer',
      summary: 'Content of a message',
      about: 'The bytes as they are sent. Needs the right `content` of a token or session.',
      query: contentQuery,
      answers: { 200: { about: 'the bytes', type: 'text/plain; charset=utf-8' } },
      problems: [UNKNOWN_MESSAGE, NO_CONTENT],
      handler: async ({ parameters, query, requester }) => {
        if (!requester.content)
          throw new Problem(HTTP_PROBLEMS.notPermitted, 'the content of messages needs the right `content` of the token or session')
        const chunks = await contentOf(view, parameters['id'] ?? '', { visible: requester.destinations, part: query.part })
        return {
          kind: 'stream',
          contentType: 'text/plain; charset=utf-8',
          chunks,
          headers: { 'content-disposition': `attachment; filename="${parameters['id'] ?? ''}.txt"`, 'x-content-type-options': 'nosniff' },
        }
      },
    }),
  ]
}

function destinationRoutes({ view, causes }: ReadDeps): readonly ApiRoute[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/destinations',
      role: 'viewer',
      summary: 'Destinations',
      about:
        'Destinations with mail, with a recorded state, or in memory. With `Accept: application/x-ndjson`, all of them, or those of `name`, as the lines of `deferd destination list --json`.',
      query: z.strictObject({
        order: z.enum(['waiting', 'name']).default('waiting').describe('most waiting mail first, or by name'),
        name: address.describe('name; * matches any text'),
        limit: pageLimit,
        after: pageCursor,
      }),
      answers: {
        200: [
          { about: 'a page', shape: destinationShapes.destinationPage },
          { about: 'all destinations', type: NDJSON, shape: destinationShapes.destination },
        ],
      },
      problems: [CURSOR_PROBLEM],
      slots: 'searches',
      handler: async (request) => {
        if (wantsLines(request)) return lines(destinationLines(view, request.query, viewerOf(request)))
        return page(await destinationPage(view, request.query, viewerOf(request)), request.written, 'after')
      },
    }),
    apiRoute({
      method: 'GET',
      path: '/destinations/:name',
      role: 'viewer',
      summary: 'One destination',
      about: 'The members of `deferd destination show --json`, with the outcomes of the last attempts and the settings in effect.',
      answers: { 200: { about: 'the destination', shape: destinationShapes.destinationDetails } },
      problems: [UNKNOWN_DESTINATION],
      handler: async ({ parameters, requester }) => json(await destinationDetails(view, parameters['name'] ?? '', requester.destinations)),
    }),
    apiRoute({
      method: 'GET',
      path: '/destinations/:name/causes',
      role: 'viewer',
      summary: 'Causes for which mail of a destination waits',
      about: 'The members of `deferd queue causes --json`. The result is kept for 30 s; `as_of` has the time at which the count began.',
      answers: { 200: { about: 'the causes, those with the most recipients first', shape: destinationShapes.causes } },
      slots: 'searches',
      handler: async (request) => json(await causes.of(request.parameters['name'] ?? '', viewerOf(request))),
    }),
  ]
}

function recordRoutes({ view }: ReadDeps): readonly ApiRoute[] {
  const historyQuery = z.strictObject({
    sender: address.describe('envelope sender; * matches any text, <> is the null sender'),
    recipient: address.describe('recipient; * matches any text'),
    outcome: z.enum(['delivered', 'bounced', 'expired', 'removed']).optional().describe('outcome of the recipient'),
    since: durationText.optional().describe('left the queue less than this ago: 30m, 2h, 1d'),
    limit: pageLimit,
    before: pageCursor,
  })
  return [
    apiRoute({
      method: 'GET',
      path: '/history',
      role: 'viewer',
      summary: 'Mail that has left the queue, the last one first',
      about:
        'A page may have fewer messages than `limit`, or none, and still have a next page. With `Accept: application/x-ndjson`, the lines of `deferd history list --json`.',
      query: historyQuery,
      answers: {
        200: [
          { about: 'a page', shape: storyShapes.historyPage },
          { about: 'all messages', type: NDJSON, shape: storyShapes.departedMessage },
        ],
      },
      problems: [CURSOR_PROBLEM],
      slots: 'searches',
      handler: async (request) => {
        const { limit: _limit, before: _before, ...conditions } = request.query
        if (wantsLines(request)) return lines(historyLines(view, conditions, viewerOf(request)))
        return page(await historyPage(view, request.query, viewerOf(request)), request.written, 'before')
      },
    }),
    apiRoute({
      method: 'GET',
      path: '/config',
      role: 'viewer',
      summary: 'Parameters in effect',
      answers: { 200: { about: 'the parameters as in the configuration file', shape: statusShapes.configuration } },
      handler: (request) => {
        assertUnlimited(request)
        return json(configuration(view))
      },
    }),
    apiRoute({
      method: 'POST',
      path: '/plans',
      role: 'viewer',
      summary: 'Plan retry policies',
      about:
        'Attempt times of mail that is never accepted, and their consequences, as `deferd simulate schedule --plan --json`. Times are in seconds. Changes nothing.',
      body: jsonBody(planBody, SMALL_BODY),
      example: { policies: ['doubling', 'fixed(10m)'], maximal_queue_lifetime: 172_800 },
      answers: { 200: { about: 'a plan for each policy', shape: statusShapes.plans } },
      handler: ({ body }) => json(retryPlans(body, view.loaded().config)),
    }),
  ]
}

/** Routes that read, in the order of the documentation. */
export const readRoutes = (deps: ReadDeps): readonly ApiRoute[] => [
  ...nowRoutes(deps),
  ...messageRoutes(deps),
  ...destinationRoutes(deps),
  ...recordRoutes(deps),
]
