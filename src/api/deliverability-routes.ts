/** Routes of the API for deliverability, and for checks of domains. Only an order makes look-ups. */
import { z } from 'zod'
import { HTTP_PROBLEMS } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import { actorOf } from '../http/requests/requester.ts'
import { deliverability } from '../queries/domains/deliverability.ts'
import { domainCheckList, domainCheckOf, orderCheck, TOO_MANY_CHECKS } from '../queries/domains/kept-checks.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { deliverabilityShape } from '../resources/domains/deliverability-json.ts'
import { domainCheckShape, domainChecksShape } from '../resources/domains/domain-check-json.ts'
import { apiRoute, assertUnlimited, json, SMALL_BODY, type ApiRoute } from './route/api-route.ts'

/** In characters: a domain, or the longest address of RFC 5321 §4.5.3.1. */
const LONGEST_NAME = 320

const from = z.string().min(1).max(LONGEST_NAME).optional().describe('sender, or its domain; `myorigin` by default')

const orderShape = z.strictObject({
  domain: z.string().min(1).max(LONGEST_NAME).describe('recipient domain'),
  from: from.describe('sender, or its domain, whose SPF, DKIM and DMARC are checked; `myorigin` by default'),
})

const checkQuery = z.strictObject({ from })

const readRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/deliverability',
    role: 'viewer',
    summary: 'Deliverability',
    about: 'The domains of senders, each with its last check, and the mail of the last 24 hours by provider. Looks nothing up.',
    answers: { 200: { about: 'the domains and the providers', shape: deliverabilityShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await deliverability(view))
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/domain-checks',
    role: 'viewer',
    summary: 'Checks of domains',
    about: 'The checks that were ordered, or made by a schedule, in the last 7 days, at most 500, the newest first. Looks nothing up.',
    answers: { 200: { about: 'the checks, without their reports', shape: domainChecksShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await domainCheckList(view))
    },
  }),
]

const checkRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/domain-checks/:domain',
    role: 'viewer',
    summary: 'One check of a domain',
    about: 'The last check of the domain for these senders, with the members of `deferd check domain NAME --json` as `report`.',
    query: checkQuery,
    answers: { 200: { about: 'the check', shape: domainCheckShape } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: async (request) => {
      assertUnlimited(request)
      return json(await domainCheckOf(view, { domain: request.parameters['domain'] ?? '', from: request.query.from }))
    },
  }),
  apiRoute({
    method: 'POST',
    path: '/domain-checks',
    role: 'operator',
    summary: 'Check a domain now',
    about:
      'As `deferd check domain NAME`, from the node that answers: look-ups, the MTA-STS policy, and sessions with its hosts that end before MAIL. At most four at once, each for at most two minutes. The same check is not made twice at once. GET /domain-checks/{domain} has the report when `state` is no longer `running`.',
    body: jsonBody(orderShape, SMALL_BODY),
    example: { domain: 'example.com', from: 'app@example.org' },
    answers: { 202: { about: 'the check that goes on', shape: domainCheckShape } },
    problems: [TOO_MANY_CHECKS],
    handler: async (request) => {
      assertUnlimited(request)
      return { kind: 'json', status: 202, value: await orderCheck(view, request.body, actorOf(request.requester)) }
    },
  }),
]

export const deliverabilityRoutes = (view: QueueView): readonly ApiRoute[] => [...readRoutes(view), ...checkRoutes(view)]
