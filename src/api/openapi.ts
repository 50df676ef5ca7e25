/** The OpenAPI 3.1 document of the API, made from the routes. */
import { z } from 'zod'
import { HTTP_PROBLEMS, type ProblemKind } from '../http/problem-details.ts'
import { VERSION } from '../system/version.ts'
import { BASE } from '../http/command-protocol.ts'
import { webhookBodyShape } from '../resources/event-json.ts'
import { RESPONSE_EXAMPLES } from './examples/response-examples.ts'
import { documentedRoute, json, type AnswerDescription, type ApiRoute } from './route/api-route.ts'

const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    errors: z.array(z.object({ pointer: z.string(), detail: z.string(), reason: z.string().optional() })).optional(),
    request_id: z.string().describe('that of the field X-Request-Id, and of the line in the log'),
  })
  .meta({ id: 'Problem' })

type Json = Readonly<Record<string, unknown>>

const JSON_TYPE = 'application/json'
const PROBLEM_TYPE = 'application/problem+json'

/** Header fields of each response. */
const REQUEST_ID = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } }

/** Problems that every route may answer with. */
export const COMMON_PROBLEMS: readonly ProblemKind[] = [
  HTTP_PROBLEMS.unauthenticated,
  HTTP_PROBLEMS.notPermitted,
  HTTP_PROBLEMS.wrongHost,
  HTTP_PROBLEMS.invalid,
  HTTP_PROBLEMS.tooManyFailures,
  HTTP_PROBLEMS.internal,
  HTTP_PROBLEMS.unavailable,
]

/** Problems that every route with a body may answer with. */
const BODY_PROBLEMS: readonly ProblemKind[] = [
  HTTP_PROBLEMS.malformed,
  HTTP_PROBLEMS.unsupportedMediaType,
  HTTP_PROBLEMS.tooLarge,
  HTTP_PROBLEMS.timeout,
  HTTP_PROBLEMS.busy,
]

/** Problems of a route, besides the problems of any request. */
export const problemsOf = ({ about, body, slots }: ApiRoute): readonly ProblemKind[] => [
  ...(about.problems ?? []),
  ...(body === undefined ? [] : BODY_PROBLEMS),
  ...(slots === undefined || body !== undefined ? [] : [HTTP_PROBLEMS.busy]),
]

/** JSON Schema of a shape, as a client writes its values. */
export const jsonSchema = (shape: z.ZodType): Json =>
  z.toJSONSchema(shape, {
    io: 'input',
    target: 'draft-2020-12',
    // zod leaves out the default of a value that is converted, such as a number in a query.
    override: ({ zodSchema, jsonSchema: written }) => {
      if (zodSchema instanceof z.ZodDefault) written.default = zodSchema.def.defaultValue
    },
  })

/** Collects the shapes that have a name. */
class Shapes {
  readonly named = new Map<string, Json>()

  /** JSON Schema of a shape; a reference for a shape with a name. */
  of(shape: z.ZodType): Json {
    const { id } = shape.meta() ?? {}
    const { $schema: _schema, id: _id, $defs = {}, ...schema } = jsonSchema(shape)
    for (const [name, definition] of Object.entries($defs as Readonly<Record<string, Json>>)) this.#name(name, definition)
    const own = inComponents(schema) as Json
    if (id === undefined) return own
    if (own['$ref'] === undefined) this.#name(id, own)
    return { $ref: `#/components/schemas/${id}` }
  }

  #name(name: string, { $schema: _schema, id: _id, ...definition }: Json): void {
    this.named.set(name, inComponents(definition) as Json)
  }
}

/** Replaces references to definitions by references to components. */
function inComponents(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inComponents)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string' ? inner.replace('#/$defs/', '#/components/schemas/') : inComponents(inner),
    ]),
  )
}

/** `/queue/:id` as the OpenAPI document writes it: `/queue/{id}`. */
const pathOf = ({ path }: ApiRoute): string => path.replace(/:(\w+)/g, '{$1}')

export const alternatives = (answer: AnswerDescription | readonly AnswerDescription[]): readonly AnswerDescription[] =>
  Array.isArray(answer) ? (answer as readonly AnswerDescription[]) : [answer as AnswerDescription]

function contentOf(answers: readonly AnswerDescription[], shapes: Shapes, example: string | undefined): Json {
  const typed = answers.filter(({ type, shape }) => type !== undefined || shape !== undefined)
  const byType = Map.groupBy(typed, ({ type = JSON_TYPE }) => type)
  return Object.fromEntries(
    [...byType].map(([type, those]) => {
      const [schema, ...others] = those.map(({ shape }) => (shape === undefined ? { type: 'string' } : shapes.of(shape)))
      const shown = type === JSON_TYPE && example !== undefined ? { example: JSON.parse(example) as unknown } : {}
      return [type, { schema: others.length === 0 ? schema : { anyOf: [schema, ...others] }, ...shown }]
    }),
  )
}

function responses(route: ApiRoute, shapes: Shapes, example: string | undefined): Json {
  const own = Object.entries(route.about.answers).map(([status, answer], at) => {
    const all = alternatives(answer)
    const content = contentOf(all, shapes, at === 0 ? example : undefined)
    const description = all.map((one) => one.about).join('; or ')
    return [status, { description, headers: REQUEST_ID, ...(Object.keys(content).length === 0 ? {} : { content }) }]
  })
  const kinds = [...problemsOf(route), ...COMMON_PROBLEMS]
  const failed = [...Map.groupBy(kinds, ({ status }) => status)].map(([status, those]) => [
    String(status),
    {
      description: [...new Set(those.map(({ title }) => title))].join('; or '),
      content: { [PROBLEM_TYPE]: { schema: shapes.of(problem) } },
    },
  ])
  return Object.fromEntries([...failed, ...own]) as Json
}

function parameters({ path, about }: ApiRoute, shapes: Shapes): readonly Json[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
  const inHeader = Object.entries(about.headers ?? {}).map(([name, description]) => ({
    name,
    in: 'header',
    description,
    schema: { type: 'string' },
  }))
  if (about.query === undefined) return [...inPath, ...inHeader]
  const { properties = {}, required = [] } = shapes.of(about.query) as {
    properties?: Readonly<Record<string, Json>>
    required?: readonly string[]
  }
  const inQuery = Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema,
  }))
  return [...inPath, ...inQuery, ...inHeader.filter(({ name }) => name !== 'Accept')]
}

function requestBody({ body, about }: ApiRoute, shapes: Shapes): Json {
  if (body === undefined) return {}
  const byType = about.bodies ?? Object.fromEntries(body.types.filter((type) => type !== '').map((type) => [type, body.shape]))
  const content = Object.fromEntries(
    Object.entries(byType).map(([type, shape]) => [
      type,
      shape === null
        ? { schema: { type: 'string' } }
        : { schema: shapes.of(shape), ...(about.example === undefined ? {} : { example: about.example }) },
    ]),
  )
  return { requestBody: { required: true, content } }
}

/** The resource of a route, by which documents group their operations: the first segment of its path. */
const tagOf = ({ path }: ApiRoute, base: string): string => path.slice(base.length).split(/[/.]/)[1] ?? ''

/** Key of the example of a route's answer, such as `GET /messages/:id`. */
export const exampleKey = ({ method, path }: Pick<ApiRoute, 'method' | 'path'>, base: string): string =>
  `${method} ${path.slice(base.length)}`

const operationOf = (route: ApiRoute, shapes: Shapes, { base, examples = {} }: Pick<DescribedApi, 'base' | 'examples'>): Json => ({
  tags: [tagOf(route, base)],
  operationId: `${route.method.toLowerCase()}${route.path.slice(base.length).replaceAll(/[/:.-]+(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
  summary: route.about.summary,
  description: [route.about.about ?? '', `Role: ${route.role}.`].filter((text) => text !== '').join(' '),
  parameters: parameters(route, shapes),
  ...requestBody(route, shapes),
  responses: responses(route, shapes, examples[exampleKey(route, base)]),
})

/** An API as its document describes it. */
export interface DescribedApi {
  /** Path of all routes. */
  readonly base: string
  readonly title: string
  readonly description: string
  readonly securitySchemes: Readonly<Record<string, Json>>
  /** JSON texts of the first answer of routes, by exampleKey. */
  readonly examples?: Readonly<Record<string, string>>
  /** Requests that the relay makes, by name. */
  readonly webhooks?: Readonly<Record<string, { readonly summary: string; readonly description: string; readonly body: z.ZodType }>>
}

const ADMIN_API: DescribedApi = {
  base: BASE,
  title: 'deferd',
  description: 'Administration of a deferd relay. Times are seconds since 1970.',
  securitySchemes: {
    token: { type: 'http', scheme: 'bearer', description: 'a token of `deferd token add`' },
    session: { type: 'apiKey', in: 'cookie', name: 'deferd-PORT', description: 'the session of a browser' },
  },
  examples: RESPONSE_EXAMPLES,
  webhooks: {
    event: {
      summary: 'An event of a subscription',
      description:
        'The request for `format = "deferd"` without batches, with the fields `webhook-id`, `webhook-timestamp` and `webhook-signature` of Standard Webhooks. docs/events.md has the data of each type.',
      body: webhookBodyShape,
    },
  },
}

type Webhook = NonNullable<DescribedApi['webhooks']>[string]

const webhookOf = (name: string, { summary, description, body }: Webhook, shapes: Shapes): Json => ({
  post: {
    operationId: `${name}Webhook`,
    summary,
    description,
    security: [],
    requestBody: { required: true, content: { 'application/json': { schema: shapes.of(body) } } },
    responses: {
      '2XX': { description: 'the event was taken' },
      410: { description: 'the subscription is disabled' },
      default: { description: 'the event is sent again' },
    },
  },
})

export function openApiDocument(
  routes: readonly ApiRoute[],
  { base, title, description, securitySchemes, examples = {}, webhooks = {} }: DescribedApi = ADMIN_API,
): Json {
  const shapes = new Shapes()
  const paths = Object.fromEntries(
    [...Map.groupBy(routes, pathOf)].map(([path, those]) => [
      path,
      Object.fromEntries(those.map((one) => [one.method.toLowerCase(), operationOf(one, shapes, { base, examples })])),
    ]),
  )
  const requests = Object.entries(webhooks).map(([name, one]) => [name, webhookOf(name, one, shapes)])
  return {
    openapi: '3.1.1',
    info: {
      title,
      version: VERSION,
      description,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: Object.keys(securitySchemes).map((name) => ({ [name]: [] })),
    tags: [...Map.groupBy(routes, (one) => tagOf(one, base))].map(([name, [first]]) => ({ name, description: first?.about.summary ?? '' })),
    paths,
    ...(requests.length === 0 ? {} : { webhooks: Object.fromEntries(requests) }),
    components: {
      schemas: Object.fromEntries(shapes.named),
      headers: {
        RequestId: {
          description: 'the id of the request: that of its field X-Request-Id when it has at most 64 letters, digits or any of ._-',
          schema: { type: 'string' },
        },
      },
      securitySchemes,
    },
  }
}

/** The route of the document, which describes itself too. */
export function openApiRoute(routes: readonly ApiRoute[], api = ADMIN_API): ApiRoute {
  let document: Json | null = null
  const self: ApiRoute = documentedRoute(api.base, {
    method: 'GET',
    path: '/openapi.json',
    role: 'known',
    summary: 'This description',
    answers: { 200: { about: 'the OpenAPI 3.1 document', shape: z.record(z.string(), z.unknown()) } },
    handler: () => json((document ??= openApiDocument([...routes, self], api))),
  })
  return self
}
