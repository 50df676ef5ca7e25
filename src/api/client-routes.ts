/** Routes of the API about clients: the rights of the requesting client, and the tokens of programs. */
import { z } from 'zod'
import { hashOf, newToken } from '../admin/secrets.ts'
import { addToken, removeToken, rightsShape, TokenExists, type TokenChangesDeps } from '../admin/token-changes.ts'
import { HTTP_PROBLEMS, Problem, type ProblemKind } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import { auditName } from '../http/requester.ts'
import { accessTokens, type KeptRecords } from '../queries/kept-records.ts'
import { accessTokensShape, clientShape } from '../resources/access-token-json.ts'
import { SECOND } from '../system/clock.ts'
import type { Random } from '../system/random.ts'
import { apiRoute, expiresIn, json, type ApiRoute } from './api-route.ts'

export interface ClientRoutesDeps {
  /** The tokens of the open queue. */
  readonly tokens: () => TokenChangesDeps & KeptRecords
  readonly random: Random
}

const BODY_LIMIT = 16 * 1024

export const newTokenBody = z.strictObject({
  name: rightsShape.name,
  role: rightsShape.role,
  content: rightsShape.content.default(false),
  destinations: rightsShape.destinations
    .default(null)
    .describe('pattern of the destinations to which the token is restricted; null for all'),
  expires_in: expiresIn('the token is refused'),
})

const TOKEN_EXISTS: ProblemKind = {
  slug: 'token-exists',
  status: 409,
  title: 'Token exists',
  about: 'There is a token of this name already: remove it first, or choose another name.',
}

function asProblem(error: unknown): never {
  throw error instanceof TokenExists ? new Problem(TOKEN_EXISTS, error.message, { cause: error }) : error
}

export function clientRoutes({ tokens, random }: ClientRoutesDeps): readonly ApiRoute[] {
  return [
    apiRoute({
      method: 'GET',
      path: '/whoami',
      role: 'known',
      summary: 'The own name and rights',
      answers: { 200: { about: 'the client', shape: clientShape } },
      handler: ({ requester }) => json(requester),
    }),
    apiRoute({
      method: 'GET',
      path: '/tokens',
      role: 'admin',
      summary: 'Tokens of programs',
      about: 'The members of `deferd token list --json`, by name.',
      answers: { 200: { about: 'the tokens', shape: accessTokensShape } },
      handler: async () => json(await accessTokens(tokens())),
    }),
    apiRoute({
      method: 'POST',
      path: '/tokens',
      role: 'admin',
      summary: 'Add a token',
      about: 'The answer has the token, which is not shown again: the queue keeps its hash only.',
      body: jsonBody(newTokenBody, BODY_LIMIT),
      answers: { 201: { about: 'the token', shape: z.object({ name: z.string(), token: z.string() }).meta({ id: 'NewToken' }) } },
      problems: [TOKEN_EXISTS],
      handler: async ({ body: { name, role, content, destinations, expires_in: seconds }, requester }) => {
        const secret = newToken(random)
        const duration = seconds === null ? null : Math.round(seconds * SECOND)
        const facts = { name, role, content, destinations: destinations?.toLowerCase() ?? null, duration, hash: hashOf(secret) }
        await addToken({ ...facts, who: auditName(requester) }, tokens()).catch(asProblem)
        return { kind: 'json', status: 201, value: { name, token: secret } }
      },
    }),
    apiRoute({
      method: 'DELETE',
      path: '/tokens/:name',
      role: 'admin',
      summary: 'Remove a token',
      about: 'It is refused from then on, on all nodes.',
      answers: { 200: { about: 'removed', shape: z.object({ name: z.string() }) } },
      problems: [HTTP_PROBLEMS.unknown],
      handler: async ({ parameters: { name = '' }, requester }) => {
        await removeToken({ name, who: auditName(requester) }, tokens())
        return json({ name })
      },
    }),
  ]
}
