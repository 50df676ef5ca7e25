/** Examples of the answers of an API, which a scripted tour collects, and their file in src/. */
import type { ApiRoute } from '../../src/api/route/api-route.ts'
import { exampleKey } from '../../src/api/openapi.ts'
import { matchRoute } from '../../src/http/route-table.ts'

/** Elements of a list in an example at most. */
const SHOWN = 2

/** Members whose values are secret. */
const SECRET = new Set(['token', 'secret'])

/** A value with short lists, and without secrets. */
function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, SHOWN).map(shortened)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, SECRET.has(key) && typeof inner === 'string' ? '…' : shortened(inner)]),
  )
}

interface Answer {
  readonly status: number
  readonly text: string
  readonly json: unknown
}

/** The first good JSON answer of each operation. */
export class ResponseExamples {
  /** By operation, such as `GET /messages`. */
  readonly answers = new Map<string, unknown>()
  readonly #routes: readonly ApiRoute[]
  readonly #base: string

  constructor(routes: readonly ApiRoute[], base: string) {
    this.#routes = routes
    this.#base = base
  }

  #routeOf(method: string, path: string): ApiRoute {
    const match = matchRoute(this.#routes, method, `${this.#base}${path.replace(/\?.*/, '')}`)
    if (match.kind !== 'found') throw new Error(`there is no ${method} ${path}`)
    return match.route as ApiRoute
  }

  operationOf(method: string, path: string): string {
    return exampleKey(this.#routeOf(method, path), this.#base)
  }

  /** Keeps an answer that is the first of those of its route. Throws for one that the route does not have. */
  keep(method: string, path: string, { status, text, json }: Answer): void {
    const expected = Object.keys(this.#routeOf(method, path).about.answers)
    if (!expected.includes(String(status))) throw new Error(`${method} ${path} answered with ${status}: ${text}`)
    const operation = this.operationOf(method, path)
    if (json !== undefined && String(status) === expected[0] && !this.answers.has(operation)) this.answers.set(operation, shortened(json))
  }
}

/** A file of src/ with examples, before it is formatted. `tour` is the file that makes them. */
export const examplesFile = (name: string, tour: string, examples: ReadonlyMap<string, unknown>): string =>
  `/** Answers of the API by operation, as JSON. Written by scripts/docs.ts from ${tour}; do not edit. */
export const ${name}: Readonly<Record<string, string>> = {
${[...examples].map(([operation, value]) => `${JSON.stringify(operation)}: ${JSON.stringify(JSON.stringify(value))},`).join('\n')}
}
`
