/** Bodies of requests: JSON or a form of a shape, or a stream of bytes. */
import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import { checkValue, type InvalidMember } from '../presentation/checked-value.ts'
import { grouped } from '../presentation/text.ts'
import { FREE, LARGEST_COLLECTED, type RequestRoom } from './body-room.ts'
import { MOST_VALUES, parseJson } from './json-text.ts'
import { HTTP_PROBLEMS, Problem } from './problem-details.ts'

export interface ReceivedBody {
  /** Media type in lower case, without parameters; empty when the request names none. */
  readonly contentType: string
  /** The body in pieces, as fast as they are read. */
  readonly bytes: AsyncIterable<Uint8Array>
  /** The whole body, in place of `bytes`. Rejects with Problem when it is larger than LARGEST_COLLECTED, or there is no room for it. */
  readonly collected: () => Promise<Buffer>
}

export interface RequestBody<Body> {
  /** Media types that are accepted. */
  readonly types: readonly string[]
  /** Maximum size in bytes. */
  readonly limit: () => number
  /** Shape of the body; null for a stream. */
  readonly shape: z.ZodType<Body> | null
  /** True when `read` resolves before the body has been received. */
  readonly isStreamed: boolean
  /** Rejects with Problem. `bytes` throws Problem at the limit. */
  readonly read: (received: ReceivedBody) => Promise<Body>
}

export const tooLarge = (limit: number, hint = ''): Problem =>
  new Problem(HTTP_PROBLEMS.tooLarge, `request body too large: the limit is ${limit} bytes${hint}`)

interface Collecting {
  /** Size that the client has declared; null for a chunked body. */
  readonly declared: number | null
  readonly limit: number
  readonly room: RequestRoom
  /** Media types that the resource accepts besides that of the body. */
  readonly otherTypes: readonly string[]
}

/** Collects a body. One above FREE takes room for its declared or the largest size before the rest is read. Rejects with Problem. */
export async function collected(bytes: AsyncIterable<Uint8Array>, { declared, limit, room, otherTypes }: Collecting): Promise<Buffer> {
  const most = Math.min(limit, LARGEST_COLLECTED)
  const hint = limit > most && otherTypes.length > 0 ? `, and more as ${otherTypes.join(' or ')}` : ''
  if (declared !== null && declared > most) throw tooLarge(most, hint)
  const wanted = declared ?? most
  let hasRoom = declared !== null && declared <= FREE
  if (declared !== null && !hasRoom) hasRoom = await room.take(wanted)
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of bytes) {
    size += chunk.length
    if (size > most) throw tooLarge(most, hint)
    if (size > FREE && !hasRoom) hasRoom = await room.take(wanted)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** A JSON body of at most `limit` bytes and `values` values. */
export const jsonBody = <Body>(shape: z.ZodType<Body>, limit: number, values = MOST_VALUES): RequestBody<Body> => ({
  types: ['application/json'],
  limit: () => limit,
  shape,
  isStreamed: false,
  read: async (received) => shaped(shape, parseJson(await received.collected(), values)),
})

/** The fields of an HTML form, of this shape. A field that occurs several times is a list. */
export const formBody = <Body>(shape: z.ZodType<Body>, limit: number): RequestBody<Body> => ({
  types: ['application/x-www-form-urlencoded'],
  limit: () => limit,
  shape,
  isStreamed: false,
  read: async (received) => {
    const fields = new URLSearchParams((await received.collected()).toString())
    if (fields.size === 0) throw new Problem(HTTP_PROBLEMS.malformed, 'the form has no fields')
    const values = new Map<string, string | string[]>()
    for (const [name, value] of fields) {
      const former = values.get(name)
      if (Array.isArray(former)) former.push(value)
      else values.set(name, former === undefined ? value : [former, value])
    }
    return shaped(shape, Object.fromEntries(values))
  },
})

/** A body that the handler reads. */
export const streamBody = (types: readonly string[], limit: () => number): RequestBody<ReceivedBody> => ({
  types,
  limit,
  shape: null,
  isStreamed: true,
  read: async (received) => received,
})

const escaped = (member: PropertyKey): string => String(member).replaceAll('~', '~0').replaceAll('/', '~1')

/** True for a client that waits for 100 Continue before it sends the body. A client of HTTP/1.0 cannot read one (RFC 9110 §10.1.1). */
export const awaitsContinue = ({ headers, httpVersion }: IncomingMessage): boolean => headers.expect !== undefined && httpVersion === '1.1'

const MOST_LISTED_MEMBERS = 20

/** The value of a body or query, as its shape has it. Throws Problem for one of another shape. */
export function shaped<T>(shape: z.ZodType<T>, value: unknown): T {
  const checked = checkValue(shape, value)
  if (checked.ok) return checked.value
  const errors = checked.invalid
    .slice(0, MOST_LISTED_MEMBERS)
    .map(({ path, detail }) => ({ pointer: path.map((member) => `/${escaped(member)}`).join(''), detail }))
  const sentences = errors.map((part) => `${part.pointer === '' ? 'the request' : part.pointer}: ${part.detail}`)
  const rest = checked.invalid.length > MOST_LISTED_MEMBERS ? [`and ${grouped(checked.invalid.length - MOST_LISTED_MEMBERS)} more`] : []
  throw new Problem(HTTP_PROBLEMS.invalid, `invalid request: ${[...sentences, ...rest].join('; ')}`, {
    errors,
    cause: new OtherShape(checked.invalid),
  })
}

/** The members of a request that do not fit its shape. */
export class OtherShape extends Error {
  override readonly name = 'OtherShape'
  readonly invalid: readonly InvalidMember[]

  constructor(invalid: readonly InvalidMember[]) {
    super('the request has another shape than expected')
    this.invalid = invalid
  }
}
