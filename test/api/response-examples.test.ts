/** Examples of answers in the OpenAPI document. */
import { expect, test } from 'vitest'
import { documentedRoutes } from '../../src/api/api-pages.ts'
import { exampleKey, openApiDocument } from '../../src/api/openapi.ts'
import { RESPONSE_EXAMPLES } from '../../src/api/examples/response-examples.ts'
import { BASE } from '../../src/http/command-protocol.ts'
import { AnswerCheck } from '../support/api-server.ts'
import { madeTour, WITHOUT_EXAMPLE } from '../support/api-tour.ts'

const routes = documentedRoutes()
const operations = routes.map((route) => exampleKey(route, BASE))
const made = madeTour()
const parsed = Object.entries(RESPONSE_EXAMPLES).map(([operation, text]) => [operation, JSON.parse(text) as object] as const)

test('the examples are answers of the API (node scripts/docs.ts)', async () => {
  expect(Object.fromEntries(parsed)).toEqual(Object.fromEntries((await made).examples))
})

test('each record of the audit log has the id of the request that caused it', async () => {
  const { audit, requests } = await made
  const ordered = audit.filter(({ who }) => who !== 'schedule nightly')
  expect(audit.length - ordered.length).toBeGreaterThan(0)
  const causes = ordered.map(({ action, requestId }) => `${action}: ${requests.get(requestId ?? '')}`)
  expect(causes.filter((cause) => !/: (?:POST|DELETE|PUT|PATCH) /.test(cause))).toEqual([])
  expect(causes).toEqual(
    expect.arrayContaining([
      'access-add: POST /access',
      'erase: POST /history/erase',
      'flush: POST /destinations/:name/probe',
      'hold: POST /operations',
      'release: POST /operations/:id/undo',
      'resend: POST /history/resend',
      'schedule: POST /schedules/:name/run',
      'suppression-import: POST /suppressions/import',
      'suspend: POST /providers/:name/suspend',
      'tls-forget: DELETE /sts-policies/:domain',
      'token remove: DELETE /tokens/:name',
      'webhook secret: POST /subscriptions/:name/secret',
    ]),
  )
  expect(audit.filter((entry) => !ordered.includes(entry)).every(({ requestId }) => requestId === null)).toBe(true)
})

test('each operation has an example, or a reason to have none', () => {
  expect([...Object.keys(RESPONSE_EXAMPLES), ...Object.keys(WITHOUT_EXAMPLE)].toSorted()).toEqual(operations.toSorted())
})

test('the shortened examples have the shapes of the answers', () => {
  const answers = new AnswerCheck(routes)
  const headers = new Headers({ 'content-type': 'application/json' })
  for (const route of routes) {
    const text = RESPONSE_EXAMPLES[exampleKey(route, BASE)]
    const status = Number(Object.keys(route.about.answers)[0])
    if (text !== undefined)
      answers.check(route.method, route.path.slice(BASE.length), { status, headers, text, json: JSON.parse(text) as object })
  }
})

test('the examples show no secret, and the document is below 600 kB', () => {
  expect(JSON.stringify(parsed)).not.toMatch(/whsec_|"(?:token|secret)":"(?!…")/)
  const document = openApiDocument(routes)
  expect(JSON.stringify(document).length).toBeLessThan(600_000)
  const example = { role: 'admin', name: 'token:admin' }
  expect(document).toMatchObject({
    paths: { [`${BASE}/whoami`]: { get: { responses: { 200: { content: { 'application/json': { example } } } } } } },
  })
})
