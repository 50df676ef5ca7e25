/** Requests of the commands `deferd page` and `deferd token` on the control socket. */
import { z } from 'zod'
import { CODE_LIFETIME, type PageUser } from '../../admin/sessions.ts'
import { addToken, newTokenShape, removeToken, type TokenChangesDeps } from '../../admin/token-changes.ts'
import { jsonBody } from '../../http/request-body.ts'
import { CLIENT_ROLES } from '../../http/requester.ts'
import { route, type Answer, type Route } from '../../http/route-table.ts'
import type { Duration } from '../../system/clock.ts'
import type { Admin } from './admin.ts'

/** A code for a login of the page. */
export interface LoginCode {
  readonly code: string
  /** In ms; a code can be used once. */
  readonly lifetime: Duration
  /** URL of the page; null while admin_listen is off. */
  readonly url: string | null
}

export interface AccountRequestsDeps extends TokenChangesDeps {
  readonly admin: Pick<Admin, 'newCode' | 'url'>
}

const BODY_LIMIT = 16 * 1024

const userShape = z.strictObject({
  user: z.string().min(1).max(64),
  role: z.enum(CLIENT_ROLES),
  content: z.boolean(),
} satisfies Record<keyof PageUser, z.ZodType>)

const removalShape = z.strictObject({ name: z.string(), who: z.string() })

const DONE: Answer = { kind: 'json', status: 200, value: {} }

export function accountRequests({ admin, ...tokens }: AccountRequestsDeps): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: '/login-codes',
      role: 'local',
      body: jsonBody(userShape, BODY_LIMIT),
      handler: ({ body }) => {
        const value: LoginCode = { code: admin.newCode(body), lifetime: CODE_LIFETIME, url: admin.url }
        return { kind: 'json', status: 200, value }
      },
    }),
    route({
      method: 'POST',
      path: '/tokens',
      role: 'local',
      body: jsonBody(newTokenShape, BODY_LIMIT),
      handler: async ({ body }) => (await addToken(body, tokens), DONE),
    }),
    route({
      method: 'POST',
      path: '/tokens/remove',
      role: 'local',
      body: jsonBody(removalShape, BODY_LIMIT),
      handler: async ({ body }) => (await removeToken(body, tokens), DONE),
    }),
  ]
}
