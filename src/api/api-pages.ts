/** Renders docs/api.md from the routes of the API, and the pages of its problems. */
import type { z } from 'zod'
import { HTTP_PROBLEMS, PROBLEM_TYPES, type ProblemKind } from '../http/problem-details.ts'
import { route, type Route } from '../http/route-table.ts'
import { Api, type ApiDeps } from './api.ts'
import { BASE } from '../http/command-protocol.ts'
import { type ApiRoute } from './route/api-route.ts'
import { alternatives, COMMON_PROBLEMS, jsonSchema, problemsOf } from './openapi.ts'
import type { QueueView } from '../queries/queue-view.ts'

const INTRO = `# API

<!-- Written by scripts/docs.ts from src/api; do not edit. -->

The resources are below \`${BASE}\` at \`admin_listen\` and at the socket \`admin.sock\` ([admin-http.md](admin-http.md) has the access to them, the
tokens and the roles). \`GET ${BASE}/openapi.json\` is the OpenAPI 3.1 document with the shapes of all requests and answers, and
an example of each JSON answer.

- Members have the names of the JSON output of commands. Members are added, never removed or renamed. Unknown members and parameters
  of a request are refused.
- Times are seconds since 1970 with a fraction; spans of a request have a unit (\`30m\`, \`2h\`, \`1d\`; in a body they may be
  seconds, as in answers).
- Lists are pages. \`next\` is a cursor, which the next request sends as \`after\` or \`before\`; the field \`Link\` has that request. A cursor holds for
  the same conditions only.
- \`Accept: application/x-ndjson\` gets all entries of a list, one JSON value per line, where the resource says so. \`format=ndjson\` does the same
  for a link, and \`format=csv\` has a column per member, with times as ISO 8601; a list in an entry has a row per element, or is JSON in its field.
- \`Idempotency-Key\` makes a change safe to repeat: the same request with the same key gets the first answer, with
  \`Idempotent-Replayed: true\`. Keys are kept for 24 hours, and belong to the token or session.
- A token that is limited by \`--destination\` sees the recipients of these destinations only, and changes messages only when it sees all of
  their recipients.
- Errors are problem details (RFC 9457, \`application/problem+json\`) with \`type\`, \`title\`, \`status\`, \`detail\`, \`request_id\`, and \`errors\` with a JSON
  pointer for each invalid part: of invalid members and parameters the first 20, of invalid recipients all.
- \`X-Request-Id\` of a response is that of the request when it has one of at most 64 letters, digits or any of \`._-\`, otherwise a new one. The line that
  the log has about a refused or failed request names it, and each record of the audit log that the request has caused (\`GET /audit?request_id=…\`).

\`\`\`
curl -H "Authorization: Bearer $TOKEN" 'http://127.0.0.1:2580${BASE}/messages?destination=gmail.com&older_than=2h'
curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: message/rfc822' --data-binary @mail.eml \\
  'http://127.0.0.1:2580${BASE}/messages?from=app@example.com&to=ann@example.net'
\`\`\`

## Resources
`

/** The routes, without a queue. They are for documentation only. */
export const documentedRoutes = (): readonly ApiRoute[] => new Api({} as QueueView, {} as ApiDeps).routes

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

const pathOf = ({ path }: ApiRoute): string => path.replace(BASE, '').replace(/:(\w+)/g, '{$1}')

interface Property {
  readonly description?: string
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  /** Alternatives, such as a number and null. */
  readonly anyOf?: readonly Property[]
  readonly oneOf?: readonly Property[]
  readonly default?: unknown
}

/** Values that a parameter takes. */
function valuesOf(property: Property): string {
  const { default: initial } = property
  const kind = kindOf(property)
  return initial === undefined ? kind : `${kind}; default \`${JSON.stringify(initial)}\``
}

/** The type, or the values; alternatives joined by `or`. */
function kindOf({ type, enum: values, const: value, anyOf, oneOf = anyOf }: Property): string {
  if (value !== undefined) return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
  if (values !== undefined) return values.map((one) => `\`${String(one)}\``).join(', ')
  if (oneOf !== undefined) return [...new Set(oneOf.map(kindOf))].join(' or ')
  return type ?? 'any value'
}

type Properties = Readonly<Record<string, Property>>

/** JSON Schema of an object, or of alternatives. */
interface Schema {
  readonly properties?: Properties
  readonly anyOf?: readonly Schema[]
}

function parameterTable(heading: string, shape: z.ZodType | undefined): readonly string[] {
  const schema: Schema = shape === undefined ? {} : jsonSchema(shape)
  const rows = Object.entries(
    Object.assign({}, ...[schema, ...(schema.anyOf ?? [])].map(({ properties = {} }) => properties)) as Properties,
  )
  if (rows.length === 0) return []
  return [
    `| ${heading} | values | meaning |`,
    '| --- | --- | --- |',
    ...rows.map(([name, property]) => `| \`${name}\` | ${cell(valuesOf(property))} | ${cell(property.description ?? '')} |`),
    '',
  ]
}

function answerLines({ about }: ApiRoute): readonly string[] {
  return Object.entries(about.answers).flatMap(([status, answer]) =>
    alternatives(answer).map((one) => `- ${status}: ${one.about}${one.type === undefined ? '' : ` (\`${one.type}\`)`}`),
  )
}

const problemLink = ({ slug, status }: ProblemKind): string => `[${status} ${slug}](#${slug})`

function section(one: ApiRoute): readonly string[] {
  const { summary, about = '', query, headers = {}, example } = one.about
  const problems = problemsOf(one)
  const fields = Object.entries(headers).map(([name, meaning]) => `- \`${name}\`: ${meaning}`)
  return [
    `### ${one.method} ${pathOf(one)}`,
    '',
    `${summary}. Role \`${one.role}\`.${about === '' ? '' : ` ${about}`}`,
    '',
    ...parameterTable('parameter', query),
    ...(fields.length === 0 ? [] : ['Header fields:', '', ...fields, '']),
    ...parameterTable('member', one.body?.shape ?? one.about.bodies?.['application/json'] ?? undefined),
    ...(example === undefined ? [] : ['```json', JSON.stringify(example, null, 2), '```', '']),
    'Answers:',
    '',
    ...answerLines(one),
    ...(problems.length === 0 ? [] : ['', `Problems: ${problems.map(problemLink).join(', ')}.`]),
    '',
  ]
}

export function allProblems(routes: readonly ApiRoute[]): readonly ProblemKind[] {
  const kinds = [...Object.values(HTTP_PROBLEMS), ...COMMON_PROBLEMS, ...routes.flatMap(problemsOf)]
  return [...new Map(kinds.map((kind) => [kind.slug, kind])).values()].toSorted((a, b) => (a.slug < b.slug ? -1 : 1))
}

export function apiPage(routes: readonly ApiRoute[]): string {
  const table = routes.map((one) => `| \`${one.method}\` | \`${pathOf(one)}\` | ${one.role} | ${cell(one.about.summary)} |`)
  const problems = allProblems(routes).flatMap(({ slug, status, title, about }) => [`### ${slug}`, '', `${status} ${title}. ${about}`, ''])
  return [
    INTRO,
    '| method | path | role | |',
    '| --- | --- | --- | --- |',
    ...table,
    '',
    ...routes.flatMap(section),
    '## Problems',
    '',
    `\`type\` of a problem is \`${PROBLEM_TYPES}NAME\`, a path at which the server describes it. Every resource may answer with`,
    `${COMMON_PROBLEMS.map(problemLink).join(', ')}.`,
    '',
    ...problems,
  ].join('\n')
}

/** The pages at which problems are described. */
export function problemRoute(routes: readonly ApiRoute[]): Route {
  const kinds = new Map(allProblems(routes).map((kind) => [kind.slug, kind]))
  return route({
    method: 'GET',
    path: `${PROBLEM_TYPES}:name`,
    role: 'known',
    handler: ({ parameters }) => {
      const kind = kinds.get(parameters['name'] ?? '')
      const text = kind === undefined ? 'No problem has this name.\n' : `${kind.status} ${kind.title}\n\n${kind.about}\n`
      return { kind: 'text', status: kind === undefined ? 404 : 200, contentType: 'text/plain; charset=utf-8', text }
    },
  })
}
