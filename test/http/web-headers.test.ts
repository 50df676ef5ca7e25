import { afterEach, expect, test } from 'vitest'
import { route } from '../../src/http/route-table.ts'
import { requestId } from '../../src/http/web-headers.ts'
import { rawResponse, requestBytes } from '../support/raw-http.ts'
import { SampleServer } from '../support/web-server.ts'

const UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

let server: SampleServer | undefined
afterEach(() => server?.close())

test.each(['a', 'x'.repeat(64), 'ci-4711_a.b', 'DEADBEEF'])('the well-formed id %j is kept', (id) => {
  expect(requestId(id)).toBe(id)
})

test.each([undefined, '', 'x'.repeat(65), 'a b', 'a,b', 'a\r\nb', 'a"b', 'é', ['a', 'b']])('there is a new id for %j', (id) => {
  expect(requestId(id)).toMatch(UUID)
  expect(requestId(id)).not.toBe(requestId(id))
})

test('every response has the id of its request, also of one that was not parsed', async () => {
  const ok = { kind: 'text', status: 200, contentType: 'text/plain', text: 'ok' } as const
  const fails = () => {
    throw new Error('broken')
  }
  server = await SampleServer.open({
    routes: [
      route({ method: 'GET', path: '/ok', role: 'anyone', handler: () => ok }),
      route({ method: 'GET', path: '/fails', role: 'anyone', handler: fails }),
    ],
  })
  const answer = async (bytes: string) => {
    const { headers, body } = await rawResponse(server?.port ?? 0, bytes)
    return { id: headers.get('x-request-id'), body }
  }
  const fields = { 'X-Request-Id': 'mine', Connection: 'close' }
  expect(await answer(requestBytes({ target: '/ok', fields }))).toEqual({ id: 'mine', body: 'ok' })
  for (const target of ['/fails', '/none']) {
    const failed = await answer(requestBytes({ target, fields }))
    expect([failed.id, JSON.parse(failed.body)]).toMatchObject(['mine', { request_id: 'mine' }])
  }
  const twice = requestBytes({ target: '/ok', fields }).replace('X-Request-Id: mine', 'X-Request-Id: mine\r\nX-Request-Id: other')
  expect((await answer(twice)).id).toMatch(UUID)
  const malformed = await answer('GET\r\n\r\n')
  expect(malformed.id).toMatch(UUID)
  expect(JSON.parse(malformed.body)).toMatchObject({ request_id: malformed.id })
})
