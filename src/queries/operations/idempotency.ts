/** The field Idempotency-Key: a request that is repeated with the same key has its effect once. */
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { HTTP_PROBLEMS, Problem, type ProblemKind } from '../../http/problem-details.ts'
import type { Requester } from '../../http/requests/requester.ts'
import type { IdempotentRequest, KeptRequest } from '../../store/records/audit-log.ts'

export const KEY_REUSED: ProblemKind = {
  slug: 'idempotency-key-reused',
  status: 422,
  title: 'Idempotency-Key of another request',
  about: 'A request with this `Idempotency-Key` and other contents was carried out within 24 hours: choose a new key.',
}

/** Field of the answer to a repeated request. */
export const REPLAYED = { 'idempotent-replayed': 'true' } as const

/** In characters. */
const LONGEST_KEY = 255

/** The key of a request, with the name of the client before it; null without the field. Throws Problem for a malformed key. */
export function keyOf(headers: IncomingHttpHeaders, { name }: Requester): string | null {
  const field = headers['idempotency-key']
  if (field === undefined) return null
  // A structured string of RFC 8941 has quotation marks, which many clients omit.
  const key = /^"(.*)"$/.exec(String(field))?.[1] ?? String(field)
  if (key !== '' && key.length <= LONGEST_KEY && /^[\u0020-\u007e]+$/.test(key)) return `${name} ${key}`
  throw new Problem(HTTP_PROBLEMS.malformed, `Idempotency-Key: expected 1 to ${LONGEST_KEY} printable ASCII characters`)
}

/** The identity of a request with JSON contents; null without a key. */
export const idempotent = (key: string | null, ...contents: readonly unknown[]): IdempotentRequest | null =>
  key === null ? null : { key, digest: createHash('sha256').update(JSON.stringify(contents)).digest('hex') }

/** Throws Problem when the kept request has other contents. */
export function assertSame({ digest }: IdempotentRequest, kept: KeptRequest): void {
  if (kept.digest !== digest)
    throw new Problem(KEY_REUSED, 'a request with this Idempotency-Key and other contents was carried out: choose a new key')
}
