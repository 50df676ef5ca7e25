/** Routes of the API for shares of the queue. */
import { z } from 'zod'
import type { QueueView } from '../queries/queue-view.ts'
import { wholeNumber } from '../queries/cursor.ts'
import { MOST_SHARES, sharesOf } from '../queries/shares.ts'
import { sharesShape } from '../resources/share-json.ts'
import { apiRoute, assertUnlimited, json, type ApiRoute } from './route/api-route.ts'

type SharesView = Pick<QueueView, 'reader' | 'policies' | 'live'>

export const shareRoutes = (view: SharesView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/shares',
    role: 'viewer',
    summary: 'The shares of the queue',
    about:
      'What waits of each share (`fair_share`), and what it had of the deliveries of its class. Reads the whole queue: a million messages take some seconds. Deliveries are those of all nodes that answer within a second.',
    query: z.strictObject({
      class: z.string().min(1).max(64).optional().describe('name of a class'),
      limit: wholeNumber(1, MOST_SHARES).default(50).describe('shares in the answer'),
    }),
    answers: { 200: { about: 'the shares', shape: sharesShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await sharesOf(view, request.query))
    },
  }),
]
