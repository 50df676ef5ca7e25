/** Header fields of every response, also of responses to requests that node:http cannot parse: to browsers, and the id of the request. */
import { uniqueId } from '../system/system-random.ts'

/** Permits only own files: no inline scripts or styles, no frames, no markup made from text (Trusted Types). */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

export const WEB_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
}

/** Field of a request with the id that the client has chosen, and of each response with the id of its request. */
export const REQUEST_ID_FIELD = 'x-request-id'

/** Form of an id of a client, because ids appear in the log. */
const WELL_FORMED = /^[\w.-]{1,64}$/

/** The id of the client when it is well-formed, otherwise a new one. Several fields are no id. */
export function requestId(given?: string | readonly string[]): string {
  return typeof given === 'string' && WELL_FORMED.test(given) ? given : uniqueId()
}
