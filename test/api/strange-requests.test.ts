/** Every resource refuses wrong methods, parameters and bodies with problem details that state what failed, why, and what to do. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiRoute } from '../../src/api/route/api-route.ts'
import { BASE } from '../../src/http/command-protocol.ts'
import type { Reply } from '../support/api-server.ts'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld
let ids: readonly string[]
beforeAll(async () => {
  world = await ApiWorld.open('memory')
  ids = await world.fill(2)
})
afterAll(() => world.close())

const as = { as: 'admin' }
const pathOf = ({ path }: ApiRoute): string =>
  path
    .slice(BASE.length)
    .replace(':id', path.includes('/operations/') ? '1' : (ids[0] ?? ''))
    .replace(':name', 'a.example.org')

/** Expects a refusal that a person understands. */
function expectProblem({ status, headers, json, text }: Reply, what: string, statuses: readonly number[]): void {
  expect(statuses, `${what}: ${text}`).toContain(status)
  expect(headers.get('content-type'), what).toMatch(/^application\/problem\+json/)
  expect(json, what).toMatchObject({
    status,
    type: expect.stringMatching(/^\/problems\/[a-z-]+$/) as string,
    title: expect.any(String) as string,
  })
  expect(json.detail.length, `${what}: ${json.detail}`).toBeGreaterThan(20)
  // The words of zod.
  for (const sentence of [json.detail, ...(json.errors ?? []).map(({ detail }) => detail)])
    expect(sentence, what).not.toMatch(/Invalid|Too (?:big|small)|Unrecognized|received/)
}

const unique = (routes: readonly ApiRoute[]): readonly ApiRoute[] => [...new Map(routes.map((one) => [one.path, one])).values()]

test('other methods get 405 with the permitted ones', async () => {
  const { routes } = world.api.api
  for (const route of unique(routes)) {
    const permitted = routes.filter(({ path }) => path === route.path).map(({ method }) => method)
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'GET'].filter((one) => !permitted.some((known) => known === one))) {
      const reply = await world.api.ask(method, pathOf(route), as)
      expectProblem(reply, `${method} ${route.path}`, [405])
      for (const known of permitted) expect(reply.headers.get('allow')).toContain(known)
    }
  }
})

test('unknown parameters, and values of a wrong kind, are named', async () => {
  for (const route of world.api.api.routes.filter(({ method }) => method === 'GET')) {
    const path = pathOf(route)
    const reply = await world.api.get(`${path}?bogus=1`, as)
    expectProblem(reply, path, path.includes('operations') ? [404, 422] : [422])
    for (const wrong of [
      'limit=0',
      'limit=1e9',
      'limit=-1',
      'limit=x',
      'limit=0x10',
      'attempts_over=',
      'limit=',
      'after=x',
      'before=x',
      'older_than=soon',
      'order=no',
      'queue=no',
    ])
      expectProblem(await world.api.get(`${path}?${wrong}`, as), `${path}?${wrong}`, [400, 404, 422])
  }
})

/** The members of an OpenAPI document that name the parameters of a query. */
interface Parameters {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly parameters?: readonly { in: string; name: string }[] }>>>>
}

test('a parameter without a value is refused: a filter that was left empty by mistake would select everything', async () => {
  const { paths } = JSON.parse((await world.api.get('/openapi.json', as)).text) as Parameters
  let tried = 0
  for (const route of world.api.api.routes.filter(({ method }) => method === 'GET')) {
    const parameters = paths[route.path.replaceAll(/:(\w+)/g, '{$1}')]?.['get']?.parameters ?? []
    for (const { name } of parameters.filter((one) => one.in === 'query')) {
      tried++
      expectProblem(await world.api.get(`${pathOf(route)}?${name}=`, as), `${route.path}?${name}=`, [400, 422])
    }
  }
  expect(tried).toBeGreaterThan(50)
  expectProblem(await world.api.get('/events?types=,message.accepted', as), 'an empty type', [422])
})

const BODIES: readonly (readonly [body: string, type: string, statuses: readonly number[]])[] = [
  ['{}', 'text/plain', [415]],
  ['', 'application/json', [400, 422]],
  ['{', 'application/json', [400]],
  ['null', 'application/json', [422]],
  ['[]', 'application/json', [422]],
  ['7', 'application/json', [422]],
  ['{"bogus":1}', 'application/json', [422]],
  ['{"__proto__":{"bogus":1}}', 'application/json', [422]],
  ['['.repeat(10_000), 'application/json', [400]],
]

test('bodies of a wrong type or shape are refused', async () => {
  for (const route of world.api.api.routes.filter(({ body }) => body !== undefined)) {
    const path = pathOf(route)
    for (const [body, type, statuses] of BODIES) {
      const reply = await world.api.ask(route.method, path, { ...as, body, headers: { 'content-type': type } })
      expectProblem(reply, `${route.method} ${path} ${body.slice(0, 20)}`, statuses)
    }
  }
})

test('an operation of another shape is told what is missing', async () => {
  const detail = async (body: unknown) => (await world.api.post('/operations', body, as)).json.detail
  expect(await detail({ operation: 'delete' })).toBe('invalid request: /selection: missing, expected an object')
  expect(await detail({ operation: 'remove', selection: { kind: 'ids', ids: ['x'] } })).toMatch(/^invalid request: \/operation: .*"delete"/)
  expect(await detail({ operation: 'delete', selection: {} })).toMatch(
    /^invalid request: \/selection\/kind: missing, expected "ids" or "filter"$/,
  )
  expect(await detail({ plan: 5 })).toBe('invalid request: /plan: expected a string, got 5')
})

test('of many invalid members, the first twenty are listed', async () => {
  const body = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`bogus${i}`, i]))
  const { json } = await world.api.post('/plans', body, as)
  expect(json.errors).toHaveLength(20)
  expect(json.detail).toMatch(/; and 28\d more$/)
})

test('lines of JSON are sent to clients that accept them, of the destinations of the query', async () => {
  const ask = async (accept: string, query = '') => {
    const { headers, text } = await world.api.get(`/destinations${query}`, { ...as, headers: { accept } })
    return [headers.get('content-type'), text.split('\n').length - 1]
  }
  const NDJSON = 'application/x-ndjson'
  expect(await ask(NDJSON)).toEqual([NDJSON, 1])
  expect(await ask(NDJSON, '?name=A.*')).toEqual([NDJSON, 1])
  expect(await ask(`application/json, ${NDJSON.toUpperCase()}; q=0.5`, '?name=none')).toEqual([NDJSON, 0])
  for (const accept of [`${NDJSON};q=0`, `application/json, ${NDJSON}; Q=0.000`, `${NDJSON}2`])
    expect(await ask(accept)).toEqual(['application/json', 1])
})

test('a suspension ends at a time that the queue can store', async () => {
  const until = async (time: number) => (await world.api.post('/destinations/a.example.org/suspend', { until: time }, as)).json.errors
  for (const time of [1e300, 253_402_300_800])
    expect(await until(time)).toMatchObject([{ pointer: '/until', detail: expect.stringContaining('at most 253402300799') as string }])
  expect(await until(253_402_300_799)).toBeUndefined()
})

test('a body that is not JSON is refused with the error of the parser', async () => {
  for (const path of ['/messages', '/plans'])
    expect((await world.api.post(path, '{"from":}', as)).json.detail).toMatch(/^request refused: the body is not JSON: Unexpected token/)
})

test.each([
  ['/nothing', 'no such path: /api/v1/nothing; GET /api/v1/openapi.json describes the resources'],
  ['/operations/0', 'there is no operation 0; GET /audit has the ids'],
  ['/operations/1e0', 'the id of an operation is a whole number; GET /audit has the ids'],
  ['/operations/0x1', 'the id of an operation is a whole number; GET /audit has the ids'],
  ['/operations/x', 'the id of an operation is a whole number; GET /audit has the ids'],
  ['/messages/x', 'there is no message x, neither in the queue nor in its history'],
])('%s is unknown', async (path, detail) => {
  expect((await world.api.get(path, as)).json).toMatchObject({ status: 404, detail })
})
