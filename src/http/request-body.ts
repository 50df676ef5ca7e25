/** Bodies of requests: JSON or a form of a shape, or a stream of bytes. */
import type { z } from 'zod'
import { errorMessage } from '../system/caught-error.ts'
import { HTTP_PROBLEMS, Problem, type InvalidPart } from './problem-details.ts'

export interface ReceivedBody {
  /** Media type in lower case, without parameters; empty when the request names none. */
  readonly contentType: string
  readonly bytes: AsyncIterable<Uint8Array>
}

/** Reads a body. */
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

async function bytesOf({ bytes }: ReceivedBody): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** A JSON body of this shape. */
export const jsonBody = <Body>(shape: z.ZodType<Body>, limit: number): RequestBody<Body> => ({
  types: ['application/json'],
  limit: () => limit,
  shape,
  isStreamed: false,
  read: async (received) => shaped(shape, parseJson(await bytesOf(received))),
})

/** The fields of an HTML form, of this shape. A field that occurs several times is a list. */
export const formBody = <Body>(shape: z.ZodType<Body>, limit: number): RequestBody<Body> => ({
  types: ['application/x-www-form-urlencoded'],
  limit: () => limit,
  shape,
  isStreamed: false,
  read: async (received) => {
    const fields = new URLSearchParams((await bytesOf(received)).toString())
    const value = Object.fromEntries([...new Set(fields.keys())].map((name) => [name, oneOrAll(fields.getAll(name))]))
    return shaped(shape, value)
  },
})

const oneOrAll = (values: readonly string[]): unknown => (values.length === 1 ? values[0] : values)

/** A body that the handler reads. */
export const streamBody = (types: readonly string[], limit: () => number): RequestBody<ReceivedBody> => ({
  types,
  limit,
  shape: null,
  isStreamed: true,
  read: async (received) => received,
})

function parseJson(bytes: Buffer): unknown {
  try {
    // Invalid UTF-8 is refused: replaced characters would name other mail than the client meant.
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new Problem(HTTP_PROBLEMS.malformed, `request refused: the body is not JSON: ${errorMessage(cause)}`, { cause })
  }
}

const escaped = (member: PropertyKey): string => String(member).replaceAll('~', '~0').replaceAll('/', '~1')

function shaped<Body>(shape: z.ZodType<Body>, value: unknown): Body {
  const parsed = shape.safeParse(value)
  if (parsed.success) return parsed.data
  throw invalid(parsed.error)
}

/** The refusal of a body or query of another shape. */
export function invalid(error: z.ZodError): Problem {
  const errors = invalidParts(error)
  const detail = errors.map((part) => `${part.pointer === '' ? 'the request' : part.pointer}: ${part.detail}`).join('; ')
  return new Problem(HTTP_PROBLEMS.invalid, `invalid request: ${detail}`, { errors, cause: error })
}

type Issue = z.core.$ZodIssue

/** Invalid parts with JSON pointers (RFC 6901). `above` is the pointer of the value that the issues are about. */
const invalidParts = ({ issues }: Pick<z.ZodError, 'issues'>, above = ''): readonly InvalidPart[] =>
  issues.flatMap((issue) => {
    const pointer = above + issue.path.map((member) => `/${escaped(member)}`).join('')
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({ pointer: `${pointer}/${escaped(key)}`, detail: 'unknown member' }))
    const meant = issue.code === 'invalid_union' ? meantAlternative(issue.errors) : undefined
    return meant === undefined ? [{ pointer, detail: detailOf(issue) }] : invalidParts({ issues: meant }, pointer)
  })

/** The alternative of a shape that a value was probably meant for: it knows the most members of the value. */
function meantAlternative(alternatives: readonly Issue[][]): Issue[] | undefined {
  const unknownIn = (issues: readonly Issue[]): number =>
    issues.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 0), 0)
  return alternatives.toSorted((a, b) => unknownIn(a) - unknownIn(b))[0]
}

const detailOf = ({ message }: Issue): string => {
  const [, expected, received] = /^Invalid input: (expected .*), received (undefined|NaN)$/.exec(message) ?? []
  if (expected === undefined) return message
  return received === 'NaN' ? expected : `missing, ${expected}`
}
