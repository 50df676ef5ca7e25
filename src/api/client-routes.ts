/** Routes of the API about clients: the rights of the requesting client, and the tokens of programs. */
import { z } from 'zod'
import { HTTP_PROBLEMS } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import { accessTokens } from '../queries/records/kept-records.ts'
import { addProgramToken, newTokenBody, removeProgramToken, TOKEN_EXISTS } from '../queries/programs/program-tokens.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { accessTokensShape, clientShape } from '../resources/access-token-json.ts'
import { apiRoute, assertUnlimited, json, type ApiRoute } from './route/api-route.ts'

const BODY_LIMIT = 16 * 1024

export const clientRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/whoami',
    role: 'known',
    summary: 'The own name and rights',
    answers: { 200: { about: 'the client', shape: clientShape } },
    handler: ({ requester: { requestId: _ofRequest, ...client } }) => json(client),
  }),
  apiRoute({
    method: 'GET',
    path: '/tokens',
    role: 'admin',
    summary: 'Tokens of programs',
    about: 'The members of `deferd token list --json`, by name.',
    answers: { 200: { about: 'the tokens', shape: accessTokensShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await accessTokens(view))
    },
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
    handler: async (request) => {
      assertUnlimited(request)
      const token = await addProgramToken(view, request.body, request.requester)
      return { kind: 'json', status: 201, value: { name: request.body.name, token } }
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
    handler: async (request) => {
      assertUnlimited(request)
      const { name = '' } = request.parameters
      await removeProgramToken(view, name, request.requester)
      return json({ name })
    },
  }),
]
