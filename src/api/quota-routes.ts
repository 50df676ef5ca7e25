/** Routes of the API for quotas. */
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import { actorOf, type Requester } from '../http/requests/requester.ts'
import { maskControls } from '../presentation/text.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { quotaUses, quotaUsesOf } from '../queries/records/quota-uses.ts'
import { quotaUsesShape } from '../resources/records/quota-json.ts'
import { apiRoute, assertUnlimited, json, pageLimit, SMALL_BODY, type ApiRoute } from './route/api-route.ts'

type QuotaView = Pick<QueueView, 'quotaChanges' | 'reader' | 'clock' | 'loaded'>

/** Longest key: an address. */
const KEY_LENGTH = 1_000

export const quotaReset = z.strictObject({
  key: z.string().min(1).max(KEY_LENGTH),
  quota: z.string().max(64).nullable().default(null).describe('name of the quota; null for all'),
})

/** Throws Problem for a key that no quota counts. */
export async function resetQuota(
  { quotaChanges }: Pick<QueueView, 'quotaChanges'>,
  { key, quota }: z.output<typeof quotaReset>,
  requester: Requester,
): Promise<void> {
  if (await quotaChanges().reset({ key, quota, ...actorOf(requester) })) return
  throw new Problem(
    HTTP_PROBLEMS.unknown,
    `${maskControls(key)} has used nothing of ${quota === null ? 'any quota' : `the quota ${maskControls(quota)}`}`,
  )
}

export const quotaRoutes = (view: QuotaView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/quotas',
    role: 'viewer',
    summary: 'The fullest quotas',
    about: 'The use of each limit of the `[quota.NAME]` tables by the keys with the most messages, the fullest limits first.',
    query: z.strictObject({ quota: z.string().min(1).max(64).optional().describe('name of a quota'), limit: pageLimit }),
    answers: { 200: { about: 'the uses', shape: quotaUsesShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await quotaUses(view, view.loaded().config, request.query))
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/quotas/:key',
    role: 'viewer',
    summary: 'The quotas of one key',
    about: 'The members of `deferd quota show --json`; empty for a key that has used nothing.',
    answers: { 200: { about: 'the uses', shape: quotaUsesShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await quotaUsesOf(view, view.loaded().config, request.parameters['key'] ?? ''))
    },
  }),
  apiRoute({
    method: 'POST',
    path: '/quotas/reset',
    role: 'operator',
    summary: 'Forget what a key has used',
    about: 'As `deferd quota reset`. Mail of the key that is held is planned anew, and leaves as far as there is room.',
    body: jsonBody(quotaReset, SMALL_BODY),
    example: { key: 'app@example.com' },
    answers: { 200: { about: 'forgotten', shape: z.object({ key: z.string() }) } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: async (request) => {
      assertUnlimited(request)
      await resetQuota(view, request.body, request.requester)
      return json({ key: request.body.key })
    },
  }),
]
