/** Routes of the API for what operators keep in the queue besides mail: access entries, MTA-STS policies and tokens of next hops. */
import { z } from 'zod'
import { parseAccessAction } from '../access/access-action.ts'
import { accessKey, type AccessEntries } from '../access/access-entries.ts'
import type { PolicyRemoval } from '../delivery/sts/policy-removal.ts'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import { actorOf } from '../http/requests/requester.ts'
import type { TokenFailure } from '../oauth/token-answer.ts'
import { ACCESS_SUBJECTS, type AccessSubject } from '../store/records/access-entry.ts'
import { errorMessage } from '../system/caught-error.ts'
import { accessEntriesShape } from '../resources/records/access-entry-json.ts'
import { oauthTablesShape, type OauthTablesJson } from '../resources/oauth-json.ts'
import { stsPoliciesShape } from '../resources/records/sts-policy-json.ts'
import { accessEntries, stsPolicies, type KeptRecords } from '../queries/records/kept-records.ts'
import { SECOND } from '../system/clock.ts'
import { expiresIn } from '../queries/named-time.ts'
import { apiRoute, assertUnlimited, json, SMALL_BODY, type ApiRoute } from './route/api-route.ts'

/** The records of the open queue. */
export interface RecordChanges extends KeptRecords {
  readonly access: Pick<AccessEntries, 'add' | 'remove'>
  /** Returns false when no policy of the domain is kept. */
  readonly removePolicy: (removal: PolicyRemoval) => Promise<boolean>
  /** The `[oauth.NAME]` tables, with their tokens. */
  readonly oauth: () => Promise<OauthTablesJson>
  /** Requests an access token for a table. Returns the failure; null for success. */
  readonly renewToken: (table: string) => Promise<TokenFailure | null>
}

const subjectShape = z.enum(ACCESS_SUBJECTS)

const entryShape = z.strictObject({
  subject: subjectShape,
  key: z.string().min(1).max(1_000).describe('key of an access table: an address, network, domain or user@'),
  action: z.string().min(1).max(1_000).describe('action of an access table, such as `REJECT text`'),
  expires_in: expiresIn('the entry ends'),
})

/** Returns the result of a parser. Its error is a problem of the member. */
function parsed<T>(member: string, parse: () => T): T {
  try {
    return parse()
  } catch (cause) {
    const detail = errorMessage(cause)
    throw new Problem(HTTP_PROBLEMS.invalid, `invalid request: /${member}: ${detail}`, {
      errors: [{ pointer: `/${member}`, detail }],
      cause,
    })
  }
}

const entryNamed = ({ subject, key }: Readonly<Record<string, string>>): { readonly subject: AccessSubject; readonly key: string } => ({
  subject: parsed('subject', () => subjectShape.parse(subject)),
  key: parsed('key', () => accessKey(subjectShape.parse(subject), key ?? '')),
})

const entryAnswer = z.object({ subject: subjectShape, key: z.string() })

const accessRoutes = (changes: () => RecordChanges): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/access',
    role: 'viewer',
    summary: 'Access entries',
    about: 'The members of `deferd access list --json`.',
    answers: { 200: { about: 'the entries', shape: accessEntriesShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await accessEntries(changes()))
    },
  }),
  apiRoute({
    method: 'POST',
    path: '/access',
    role: 'admin',
    summary: 'Add an access entry',
    about: 'As `deferd access add`, in place of the entry with the same subject and key.',
    body: jsonBody(entryShape, SMALL_BODY),
    example: { subject: 'sender', key: 'app@example.com', action: 'REJECT too many bounces', expires_in: 7_200 },
    answers: { 200: { about: 'the entry', shape: entryAnswer } },
    handler: async ({ body: { subject, action, expires_in: seconds, ...given }, requester }) => {
      const key = parsed('key', () => accessKey(subject, given.key))
      parsed('action', () => parseAccessAction(action))
      const duration = seconds === null ? null : Math.round(seconds * SECOND)
      await changes().access.add({ subject, key, action, duration, ...actorOf(requester) })
      return json({ subject, key })
    },
  }),
  apiRoute({
    method: 'DELETE',
    path: '/access/:subject/:key',
    role: 'admin',
    summary: 'Remove an access entry',
    answers: { 200: { about: 'removed', shape: entryAnswer } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: async ({ parameters, requester }) => {
      const { subject, key } = entryNamed(parameters)
      if (await changes().access.remove(subject, key, actorOf(requester))) return json({ subject, key })
      throw new Problem(HTTP_PROBLEMS.unknown, `there is no access entry for ${subject} ${key}`)
    },
  }),
]

const policyRoutes = (changes: () => RecordChanges): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/sts-policies',
    role: 'viewer',
    summary: 'Kept MTA-STS policies',
    about: 'The members of `deferd tls list --json`.',
    answers: { 200: { about: 'the policies', shape: stsPoliciesShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await stsPolicies(changes()))
    },
  }),
  apiRoute({
    method: 'DELETE',
    path: '/sts-policies/:domain',
    role: 'operator',
    summary: 'Remove the MTA-STS policy of a domain',
    about: 'As `deferd tls forget`: the next delivery fetches the policy again.',
    answers: { 200: { about: 'removed', shape: z.object({ domain: z.string() }) } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: async (request) => {
      assertUnlimited(request)
      const { domain = '' } = request.parameters
      if (await changes().removePolicy({ domain, ...actorOf(request.requester) })) return json({ domain })
      throw new Problem(HTTP_PROBLEMS.unknown, `no MTA-STS policy of ${domain} is kept`)
    },
  }),
]

const failureShape = z.object({ kind: z.enum(['temporary', 'refused']), error: z.string().optional(), why: z.string() })

const oauthRoutes = (changes: () => RecordChanges): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/oauth',
    role: 'viewer',
    summary: 'Sources of access tokens for next hops',
    about: 'The members of `deferd oauth list --json`, with the tokens of this node.',
    answers: { 200: { about: 'the [oauth.NAME] tables', shape: oauthTablesShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await changes().oauth())
    },
  }),
  apiRoute({
    method: 'POST',
    path: '/oauth/:name/renew',
    role: 'admin',
    summary: 'Request an access token of an [oauth.NAME] table',
    about: 'Asks the authority even while the kept token can be used. The answer has no token.',
    answers: { 200: { about: 'the failure, or null', shape: z.object({ failure: failureShape.nullable() }) } },
    handler: async ({ parameters: { name = '' } }) => json({ failure: await changes().renewToken(name) }),
  }),
]

export const recordRoutes = (changes: () => RecordChanges): readonly ApiRoute[] => [
  ...accessRoutes(changes),
  ...policyRoutes(changes),
  ...oauthRoutes(changes),
]
