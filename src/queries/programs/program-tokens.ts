/** Tokens of programs: the request for a new one, its plan, and its removal, for the API and the page. */
import { z } from 'zod'
import { hashOf, newToken } from '../../admin/secrets.ts'
import { addToken, removeToken, rightsShape, TokenExists, UnknownToken } from '../../admin/token-changes.ts'
import { HTTP_PROBLEMS, Problem, type ProblemKind } from '../../http/problem-details.ts'
import { actorOf, type Requester } from '../../http/requests/requester.ts'
import { maskControls } from '../../presentation/text.ts'
import type { AccessTokenJson } from '../../resources/access-token-json.ts'
import { SECOND } from '../../system/clock.ts'
import { accessTokens } from '../records/kept-records.ts'
import { expiresIn } from '../named-time.ts'
import type { QueueView } from '../queue-view.ts'

export const newTokenBody = z.strictObject({
  name: rightsShape.name,
  role: rightsShape.role,
  content: rightsShape.content.default(false),
  destinations: rightsShape.destinations
    .default(null)
    .describe('pattern of the destinations to which the token is restricted; null for all'),
  expires_in: expiresIn('the token is refused'),
})

export const TOKEN_EXISTS: ProblemKind = {
  slug: 'token-exists',
  status: 409,
  title: 'Token exists',
  about: 'There is a token of this name already: remove it first, or choose another name.',
}

const refused = (error: unknown): never => {
  throw error instanceof TokenExists ? new Problem(TOKEN_EXISTS, error.message, { cause: error }) : error
}

/** Adds a token, and returns it. Throws Problem when there is one of its name. */
export async function addProgramToken(
  view: Pick<QueueView, 'tokens' | 'random'>,
  { expires_in: seconds, destinations, ...rights }: z.output<typeof newTokenBody>,
  requester: Requester,
): Promise<string> {
  const token = newToken(view.random)
  const duration = seconds === null ? null : Math.round(seconds * SECOND)
  const facts = { ...rights, destinations: destinations?.toLowerCase() ?? null, duration, hash: hashOf(token) }
  await addToken({ ...facts, ...actorOf(requester) }, view.tokens()).catch(refused)
  return token
}

const unknownToken = (name: string, cause?: unknown): Problem =>
  new Problem(HTTP_PROBLEMS.unknown, `there is no token ${maskControls(name)}`, { hint: 'GET /tokens has all names', cause })

/** One token. Throws Problem for an unknown name. */
export async function programToken(view: QueueView, name: string): Promise<AccessTokenJson> {
  const token = (await accessTokens(view)).tokens.find((one) => one.name === name)
  if (token !== undefined) return token
  throw unknownToken(name)
}

/** Removes a token. Throws Problem for an unknown name. */
export const removeProgramToken = (view: Pick<QueueView, 'tokens'>, name: string, requester: Requester): Promise<void> =>
  removeToken({ name, ...actorOf(requester) }, view.tokens()).catch((error: unknown) => {
    throw error instanceof UnknownToken ? unknownToken(name, error) : error
  })
