/** Routes of the results of a world: recipients, assertions, operations and the history. */
import { z } from 'zod'
import { json, lines, type ApiRoute } from '../api/route/api-route.ts'
import { NDJSON } from '../http/command-protocol.ts'
import { invalidPart } from '../http/problem-details.ts'
import { patternMatcher } from '../patterns/filter-pattern.ts'
import { OPERATIONS, UnknownClass } from '../queue/operation-request.ts'
import { tlsJson, tlsShape } from '../resources/message-story-json.ts'
import type { Recipient } from '../testkit/results/recipient.ts'
import { assertionShape, findingOf, findingShape } from './assertions.ts'
import type { Lab } from './lab.ts'
import { LAB_PROBLEMS } from './lab-problems.ts'
import { optionalJson, seconds, time, worldRoute } from './lab-route.ts'
import type { LabWorld } from './lab-world.ts'
import { outcomesHash } from './outcomes-hash.ts'
import { clockAnswer, clockShape } from './world-routes.ts'

const attemptShape = z.object({
  at: seconds.describe('seconds since the acceptance of the message'),
  outcome: z.enum(['delivered', 'deferred', 'bounced', 'expired']),
  reply: z.string().nullable(),
  status: z.string(),
  host: z.string().nullable(),
  stage: z.string(),
  reason: z.string(),
  queue_id: z.string(),
  tls: tlsShape.nullable(),
})

const recipientShape = z
  .object({
    address: z.string(),
    accepted: z.int(),
    attempts: z.array(attemptShape),
    attempted_at: z.array(z.number()),
    notices: z.array(z.string()),
    copies: z.array(z.int()),
    story: z.array(z.string()),
  })
  .meta({ id: 'Recipient' })

const recipientJson = (one: Recipient): z.output<typeof recipientShape> => ({
  address: one.address,
  accepted: one.accepted,
  attempts: one.attempts.map(({ queueId, reply = null, host = null, tls, ...rest }) => ({
    ...rest,
    reply,
    host,
    tls: tls === undefined ? null : tlsJson(tls),
    queue_id: queueId,
  })),
  attempted_at: [...one.attemptedAt],
  notices: [...one.notices],
  copies: [...one.copies],
  story: [...one.story],
})

const countsShape = z.object({
  recipients: z.array(z.object({ address: z.string(), accepted: z.int(), attempts: z.int(), copies: z.int() })),
})

const quotasShape = z
  .object({
    quotas: z.array(z.object({ quota: z.string(), limit: z.string().describe('as `1000/1h`'), used: z.int(), is_full: z.boolean() })),
  })
  .meta({ id: 'Quotas' })

const quotaRoute = (lab: Lab): ApiRoute =>
  worldRoute(lab, {
    method: 'GET',
    path: '/quotas/:key',
    summary: 'Use of the quotas of a key',
    about: 'A key such as a sender or `token:app`; empty for a key that no quota counts.',
    answers: { 200: { about: 'each limit of each quota', shape: quotasShape } },
    problems: [LAB_PROBLEMS.relayDown],
    handler: (world, { parameters }) =>
      world.inOrder(async () => {
        world.assertUp()
        const uses = await world.world.quotas(parameters['key'] ?? '')
        return json({ quotas: uses.map(({ quota, limit, used, isFull }) => ({ quota, limit, used, is_full: isFull })) })
      }),
  })

export const recipientRoutes = (lab: Lab): readonly ApiRoute[] => [
  worldRoute(lab, {
    method: 'GET',
    path: '/recipients',
    summary: 'Addresses for which mail was accepted',
    query: z.strictObject({ address: z.string().min(1).max(1_000).default('*').describe('address; * matches any text') }),
    answers: { 200: { about: 'the addresses, with counts', shape: countsShape } },
    handler: (world, { query }) =>
      world.inOrder(() => {
        const found = world.world.addresses.filter(patternMatcher(query.address)).map((address) => world.world.recipient(address))
        const counted = found.map(({ address, accepted, attempts, copies }) => ({
          address,
          accepted,
          attempts: attempts.length,
          copies: copies.reduce((sum, count) => sum + count, 0),
        }))
        return json({ recipients: counted })
      }),
  }),
  worldRoute(lab, {
    method: 'GET',
    path: '/recipients/:address',
    summary: 'Attempts, notices and timeline of an address',
    answers: { 200: { about: 'the recipient', shape: recipientShape } },
    handler: (world, { parameters }) => world.inOrder(() => json(recipientJson(world.world.recipient(parameters['address'] ?? '')))),
  }),
  quotaRoute(lab),
  worldRoute(lab, {
    method: 'POST',
    path: '/asserts',
    summary: 'Assert something about recipients',
    about:
      'The matchers of docs/testkit.md. `args` are those of the matcher: an object, or the list of times or notices. One assertion, or a list.',
    body: optionalJson(z.union([assertionShape, z.array(assertionShape).min(1).max(1_000)])),
    example: { recipient: 'ann@slow.example', matcher: 'was_attempted_at', args: [0, 300] },
    answers: {
      200: [
        { about: 'whether it holds', shape: findingShape },
        { about: 'one for each of the list', shape: z.array(findingShape) },
      ],
    },
    problems: [LAB_PROBLEMS.vacuous],
    handler: (world, { body }) =>
      world.inOrder(() => {
        const find = (one: Parameters<typeof findingOf>[0]) => findingOf(one, (address) => world.world.recipient(address))
        return json(Array.isArray(body) ? body.map(find) : find(body))
      }),
  }),
]

const summaryShape = z
  .object({ matched: z.int(), changed: z.int(), in_transfer: z.int(), unknown: z.array(z.string()) })
  .meta({ id: 'OperationSummary' })

const operationBody = z.strictObject({
  operation: z.enum(OPERATIONS),
  ids: z.array(z.string().max(100)).max(100_000).optional().describe('queue ids; all messages when absent'),
  not_before: time.optional().describe('for `reschedule`, time from now before which no delivery begins'),
  class: z.string().min(1).max(100).optional().describe('for `reclass`, name of the class that the messages get'),
})

/** The terms that an operation needs. Throws Problem when one is missing, or belongs to another operation. */
function termsOf({ operation, not_before: notBefore, class: named }: z.output<typeof operationBody>) {
  if ((operation === 'reschedule') !== (notBefore !== undefined))
    throw invalidPart('/not_before', 'reschedule, and no other operation, needs a time')
  if ((operation === 'reclass') !== (named !== undefined)) throw invalidPart('/class', 'reclass, and no other operation, needs a class')
  return { ...(notBefore === undefined ? {} : { notBefore }), ...(named === undefined ? {} : { class: named }) }
}

/** A class without a table is a mistake of the request. */
function refusalOf(error: unknown): unknown {
  return error instanceof UnknownClass ? invalidPart('/class', error.message) : error
}

const destinationBody = z.strictObject({ destination: z.string().min(1).max(255) })

/** Suspends or resumes a destination. */
const suspension = (lab: Lab, name: 'suspend' | 'resume', summary: string): ApiRoute =>
  worldRoute(lab, {
    method: 'POST',
    path: `/${name}`,
    summary,
    body: optionalJson(destinationBody),
    answers: { 200: { about: 'the clock', shape: clockShape } },
    problems: [LAB_PROBLEMS.relayDown],
    handler: (world, { body }) =>
      world.inOrder(async () => {
        world.assertUp()
        await world.world[name](body.destination)
        return clockAnswer(world)
      }),
  })

export const labOperationRoutes = (lab: Lab): readonly ApiRoute[] => [
  worldRoute(lab, {
    method: 'POST',
    path: '/operations',
    summary: 'Perform an operation on messages',
    body: optionalJson(operationBody),
    example: { operation: 'hold' },
    answers: { 200: { about: 'its summary', shape: summaryShape } },
    problems: [LAB_PROBLEMS.relayDown],
    handler: (world, { body }) =>
      world.inOrder(async () => {
        world.assertUp()
        const { operation, ids = 'all' } = body
        const { inTransfer, ...summary } = await world.world.operate(operation, ids, termsOf(body)).catch((error: unknown) => {
          throw refusalOf(error)
        })
        return json({ ...summary, in_transfer: inTransfer })
      }),
  }),
  suspension(lab, 'suspend', 'Suspend deliveries to a destination'),
  suspension(lab, 'resume', 'Resume deliveries to a destination'),
]

const historyShape = z
  .object({
    hash: z.string().nullable().describe('equal for equal seeds and calls; null with a clock that has followed real time'),
    outcomes_hash: z.string().describe('of attempts and notices by recipient; equal for concurrent clients with addresses of their own'),
    order: z.enum(['sequential', 'concurrent']).nullable(),
    events: z.int(),
  })
  .meta({ id: 'History' })

async function* historyLines({ world }: LabWorld): AsyncGenerator<string> {
  for (const event of world.history().events) yield `${JSON.stringify(event)}\n`
}

export const historyRoutes = (lab: Lab): readonly ApiRoute[] => [
  worldRoute(lab, {
    method: 'GET',
    path: '/history',
    summary: 'Hashes of all that happened; or all events',
    query: z.strictObject({ events: z.enum(['true', 'false']).default('false').describe('true for all events, one per line') }),
    answers: {
      200: [
        { about: 'the hashes', shape: historyShape },
        { about: 'the events', type: NDJSON, shape: z.record(z.string(), z.unknown()) },
      ],
    },
    handler: (world, { query }) =>
      world.inOrder(() => {
        if (query.events === 'true') return lines(historyLines(world))
        const history = world.world.history()
        const { order } = world
        return json({
          hash: order === null ? null : history.hash(),
          outcomes_hash: outcomesHash(world.world),
          order,
          events: history.events.length,
        })
      }),
  }),
]
