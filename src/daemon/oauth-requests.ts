/** Requests of the command `deferd oauth` on the control socket. No token is in an answer. */
import { z } from 'zod'
import { jsonBody } from '../http/request-body.ts'
import { route, type Route } from '../http/route-table.ts'
import type { AccessTokens } from '../oauth/access-tokens.ts'
import type { TokenFailure } from '../oauth/token-answer.ts'
import { ANY_USER } from '../oauth/token-requests.ts'

export interface RenewalReply {
  /** Null when the queue has received a new token. */
  readonly failure: TokenFailure | null
}

const BODY_LIMIT = 16 * 1024

const renewalShape = z.strictObject({ name: z.string().min(1) })

export const oauthRequests = (tokens: Pick<AccessTokens, 'renew'>): readonly Route[] => [
  route({
    method: 'POST',
    path: '/oauth/renew',
    role: 'local',
    body: jsonBody(renewalShape, BODY_LIMIT),
    handler: async ({ body }) => {
      const value: RenewalReply = { failure: await tokens.renew(body.name, ANY_USER) }
      return { kind: 'json', status: 200, value }
    },
  }),
]
