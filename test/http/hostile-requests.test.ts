/** Requests to the admin server, byte by byte, that are wrong, ambiguous or hostile. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import fc from 'fast-check'
import { z } from 'zod'
import { jsonBody } from '../../src/http/request-body.ts'
import { route } from '../../src/http/route-table.ts'
import { conversation, rawResponse, requestBytes, responsesIn, type RawResponse } from '../support/raw-http.ts'
import { SampleServer } from '../support/web-server.ts'

/** Paths of requests that reached a handler. */
let handled: string[] = []

const ROUTES = [
  route({
    method: 'GET',
    path: '/files/:name',
    role: 'anyone',
    handler: ({ parameters: { name = '' } }) => {
      handled.push(name)
      return { kind: 'json', status: 200, value: { name } }
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/notes',
    role: 'sender',
    body: jsonBody(z.strictObject({ 'a/b': z.number() }), 200),
    handler: ({ body }) => {
      handled.push(JSON.stringify(body))
      return { kind: 'json', status: 200, value: body }
    },
  }),
]

let server: SampleServer
beforeAll(async () => {
  server = await SampleServer.open({ routes: ROUTES, hosts: ['relay.example'] })
})
afterAll(() => server.close())
beforeEach(() => {
  handled = []
})

const raw = (bytes: string): Promise<RawResponse> => rawResponse(server.port, bytes)

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

/** Expects a refusal in problem details with the header fields of all responses, and that no handler has run. */
function expectRefusal(response: RawResponse, status: number, slug: string): void {
  expect([response.status, JSON.parse(response.body)]).toEqual([
    status,
    {
      type: `/problems/${slug}`,
      title: expect.any(String),
      status,
      detail: expect.any(String),
      request_id: response.headers.get('x-request-id'),
    },
  ])
  expectFields(response)
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(handled).toEqual([])
}

function expectFields({ headers }: RawResponse): void {
  expect(headers.get('content-security-policy')).toBe(POLICY)
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
  expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
  expect(headers.get('referrer-policy')).toBe('same-origin')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.has('access-control-allow-origin')).toBe(false)
  expect(headers.has('server')).toBe(false)
}

test.each([
  ['a foreign name', 'evil.example'],
  ['a name that begins like an own one', 'localhost.evil.example'],
  ['a name that ends like an own one', 'evillocalhost'],
  ['a served name as a subdomain', 'x.relay.example'],
  ['a foreign address', '192.0.2.1'],
  ['another writing of the address', '2130706433'],
  ['an address with a user', 'evil@127.0.0.1'],
  ['the address of all interfaces', '0.0.0.0'],
  ['an empty host', ''],
  ['a list of hosts', 'localhost, evil.example'],
  ['a host with a path', 'localhost/x'],
  ['markup', '<script>alert(1)</script>'],
])('%s as Host is refused on every path', async (_, host) => {
  for (const target of ['/', '/files/x', '/login', '/unknown', '/api/v1/whoami'])
    expectRefusal(await raw(requestBytes({ target, host })), 421, 'wrong-host')
})

test.each([
  'localhost',
  'LOCALHOST:9',
  'localhost.',
  '127.0.0.1',
  '127.0.0.1:2580',
  '[::1]',
  '[::1]:2580',
  'relay.example',
  'Relay.Example:443',
])('the host %s is served', async (host) => {
  const response = await raw(requestBytes({ target: '/files/x', host }))
  expect([response.status, handled]).toEqual([200, ['x']])
  expectFields(response)
})

test('an absolute target replaces the host, and both must be served', async () => {
  const get = (target: string, host: string) => raw(requestBytes({ target, host }))
  expectRefusal(await get('http://evil.example/files/x', 'localhost'), 421, 'wrong-host')
  expectRefusal(await get('http://localhost/files/x', 'evil.example'), 421, 'wrong-host')
  expectRefusal(await get('http://localhost@evil.example/files/x', 'localhost'), 421, 'wrong-host')
  expect((await get('HTTP://localhost/files/x', 'localhost')).status).toBe(200)
  expect((await get('http://localhost?x=1', 'localhost')).status).toBe(404)
})

test.each([
  ['no field Host', 'GET /files/x HTTP/1.1\r\nConnection: close\r\n\r\n'],
  ['no field Host in HTTP/1.0', 'GET /files/x HTTP/1.0\r\n\r\n'],
  ['two fields Host', 'GET /files/x HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n'],
  ['two equal fields Host', 'GET /files/x HTTP/1.1\r\nHost: localhost\r\nhost: localhost\r\nConnection: close\r\n\r\n'],
  [
    'two tokens',
    requestBytes({
      target: '/api/v1/whoami',
      fields: [
        ['Authorization', 'Bearer a'],
        ['Authorization', 'Bearer b'],
      ],
    }),
  ],
  [
    'two origins',
    requestBytes({
      method: 'POST',
      target: '/login',
      fields: [
        ['Origin', 'http://localhost'],
        ['Origin', 'http://evil'],
      ],
    }),
  ],
  [
    'two types',
    requestBytes({
      method: 'POST',
      target: '/login',
      fields: [
        ['Content-Type', 'text/plain'],
        ['Content-Type', 'application/json'],
      ],
    }),
  ],
  [
    'two keys',
    requestBytes({
      method: 'POST',
      target: '/login',
      fields: [
        ['Idempotency-Key', 'a'],
        ['Idempotency-Key', 'b'],
      ],
    }),
  ],
  ['a fragment in the target', requestBytes({ target: '/files/x#y' })],
  ['a target of another scheme', requestBytes({ target: 'ftp://localhost/files/x' })],
  ['the asterisk', requestBytes({ method: 'OPTIONS', target: '*' })],
  ['a line folded onto the next', 'GET /files/x HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\nConnection: close\r\n\r\n'],
  ['a blank before the colon', 'GET /files/x HTTP/1.1\r\nHost : localhost\r\nConnection: close\r\n\r\n'],
  ['a NUL in a field', 'GET /files/x HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n'],
  ['a lone LF as line end', 'GET /files/x HTTP/1.1\nHost: localhost\n\n'],
  ['a request line without a version', 'GET /files/x\r\n\r\n'],
  ['the version of HTTP/2', 'GET /files/x HTTP/2.0\r\nHost: localhost\r\nConnection: close\r\n\r\n'],
  ['an unknown version', 'GET /files/x HTTP/3.0\r\nHost: localhost\r\n\r\n'],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['bytes of TLS', '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03'],
  ['an unknown method', 'FROBNICATE /files/x HTTP/1.1\r\nHost: localhost\r\n\r\n'],
])('%s is malformed', async (_, bytes) => {
  expectRefusal(await raw(bytes), 400, 'malformed')
})

test.each([
  ['Content-Length and Transfer-Encoding', 'Content-Length: 6\r\nTransfer-Encoding: chunked\r\n'],
  ['Transfer-Encoding and Content-Length', 'Transfer-Encoding: chunked\r\nContent-Length: 6\r\n'],
  ['two lengths', 'Content-Length: 5\r\nContent-Length: 6\r\n'],
  ['a list of lengths', 'Content-Length: 5, 5\r\n'],
  ['a length with a sign', 'Content-Length: +5\r\n'],
  ['a negative length', 'Content-Length: -5\r\n'],
  ['a length in hexadecimal digits', 'Content-Length: 0x5\r\n'],
  ['an unknown coding', 'Transfer-Encoding: xchunked\r\n'],
  ['chunked twice', 'Transfer-Encoding: chunked, chunked\r\n'],
  ['chunked not last', 'Transfer-Encoding: chunked, identity\r\n'],
  ['a blank before the colon of Transfer-Encoding', 'Transfer-Encoding : chunked\r\nContent-Length: 5\r\n'],
  ['a vertical tab in Transfer-Encoding', 'Transfer-Encoding: \x0bchunked\r\nContent-Length: 5\r\n'],
])('a request that parsers split differently (%s) hides no second one', async (_, fields) => {
  const hidden = 'GET /files/hidden HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
  const text = await conversation(server.port, `POST /api/v1/notes HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n0\r\n\r\n${hidden}`)
  expect(handled).toEqual([])
  for (const response of responsesIn(text)) expect([400, 401]).toContain(response.status)
  expect(text).not.toContain('hidden')
})

test('a malformed request after a good one does not disturb the response to the first', async () => {
  const good = 'GET /files/one HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const [first, second, ...others] = responsesIn(await conversation(server.port, `${good}BAD\r\n\r\n`))
  expect([first?.status, first?.body]).toEqual([200, '{"name":"one"}\n'])
  expect([second?.status, second?.headers.get('connection'), others]).toEqual([400, 'close', []])
})

test.each(['OPTIONS', 'TRACE', 'PUT', 'PATCH', 'DELETE', 'PROPFIND'])('%s is not allowed, and nothing is echoed', async (method) => {
  const response = await raw(requestBytes({ method, target: '/files/x', fields: { Cookie: 'secret=1', Origin: 'http://localhost' } }))
  expectRefusal(response, 405, 'method-not-allowed')
  expect([response.headers.get('allow'), response.body.includes('secret')]).toEqual(['GET, HEAD', false])
})

test('CONNECT and an upgrade open no tunnel', async () => {
  const connect = await raw('CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n')
  expectRefusal(connect, 405, 'method-not-allowed')
  expect(connect.headers.get('allow')).toBe('GET, HEAD, POST, DELETE')
  const fields = { Upgrade: 'websocket', 'Sec-WebSocket-Key': 'x', 'Sec-WebSocket-Version': '13' }
  const response = await raw(requestBytes({ target: '/files/x', fields }).replace('Connection: close', 'Connection: upgrade, close'))
  expect(response.status).toBe(200)
})

test('HEAD has the fields of GET and no body', async () => {
  const head = await raw(requestBytes({ method: 'HEAD', target: '/files/x' }))
  const get = await raw(requestBytes({ target: '/files/x' }))
  expect(get.headers.get('content-length')).toBe(String(get.body.length))
  expect([head.status, head.body, head.headers.get('content-length')]).toEqual([200, '', get.headers.get('content-length')])
  expectFields(head)
})

test.each([
  ['/files/..', 200, ['..']],
  ['/files/%2e%2e', 200, ['..']],
  ['/files/%2e%2e%2f%2e%2e%2fetc%2fpasswd', 200, ['../../etc/passwd']],
  ['/files/../../etc/passwd', 404, []],
  ['//evil.example/files/x', 404, []],
  ['/files//x', 404, []],
  ['/files/', 404, []],
  ['/files/%', 404, []],
  ['/files/%ff', 404, []],
  ['/files/%c0%ae', 404, []],
  ['/%66iles/x', 200, ['x']],
  ['/files/a%00b', 200, ['a\0b']],
  ['/Files/x', 404, []],
  ['/files\\x', 404, []],
])('the path %s is matched as it is written: %i', async (target, status, names) => {
  const { status: given } = await raw(requestBytes({ target }))
  expect([given, handled]).toEqual([status, names])
})

test('a header above 16 kB is refused', async () => {
  expectRefusal(await raw(requestBytes({ target: '/files/x', fields: { X: 'a'.repeat(20_000) } })), 431, 'header-too-large')
  expectRefusal(await raw(requestBytes({ target: `/files/${'a'.repeat(20_000)}` })), 431, 'header-too-large')
})

test('thousands of fields do not reach a handler or end the server', async () => {
  const fields = Array.from({ length: 5_000 }, (_, i) => [`X${i}`, 'a'] as const)
  expect((await raw(requestBytes({ target: '/files/x', fields }))).status).toBe(431)
  expect((await raw(requestBytes({ target: '/files/x' }))).status).toBe(200)
})

const post = (body: string, fields: Readonly<Record<string, string>> = { 'Content-Type': 'application/json' }) =>
  raw(
    requestBytes({
      method: 'POST',
      target: '/api/v1/notes',
      fields: { Authorization: `Bearer ${server.token({ role: 'sender' })}`, ...fields },
      body,
    }),
  )

test('a body needs its media type', async () => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/json2', ''])
    expectRefusal(await post('{"a/b":1}', { 'Content-Type': type }), 415, 'unsupported-media-type')
  expect((await post('{"a/b":1}', { 'Content-Type': 'Application/JSON ; charset=utf-8' })).status).toBe(200)
})

test('a body with a content coding is not read as if it had none', async () => {
  const coded = (coding: string) => post('{"a/b":1}', { 'Content-Type': 'application/json', 'Content-Encoding': coding })
  for (const coding of ['gzip', 'GZip', 'br', 'identity, gzip']) {
    const response = await coded(coding)
    expectRefusal(response, 415, 'unsupported-media-type')
    expect([response.headers.get('accept-encoding'), response.body]).toEqual(['identity', expect.stringContaining(coding.toLowerCase())])
  }
  expect((await coded('identity')).status).toBe(200)
})

test('a body is refused with pointers to its invalid members', async () => {
  const { status, body } = await post('{"a/b":"x","c~":1}')
  expect([status, JSON.parse(body)]).toMatchObject([
    422,
    {
      type: '/problems/invalid',
      errors: [
        { pointer: '/a~1b', detail: 'expected a number, got "x"' },
        { pointer: '/c~0', detail: 'unknown member; known: a/b' },
      ],
    },
  ])
})

test.each(['', '{', '{"a/b":1}x', '{"a/b":NaN}', '\xff', '{"a/b":1\0}'])('a body that is not JSON (%j) is malformed', async (body) => {
  expectRefusal(await post(body), 400, 'malformed')
})

test('a body above its limit is refused, by its length or while it arrives', async () => {
  expectRefusal(await post(JSON.stringify({ text: 'x'.repeat(300) })), 413, 'too-large')
  const chunk = `80\r\n${'x'.repeat(128)}\r\n`
  const request = requestBytes({
    method: 'POST',
    target: '/api/v1/notes',
    fields: {
      Authorization: `Bearer ${server.token({ role: 'sender' })}`,
      'Content-Type': 'application/json',
      'Transfer-Encoding': 'chunked',
    },
  })
  expectRefusal(await raw(`${request}${chunk.repeat(3)}0\r\n\r\n`), 413, 'too-large')
})

test('a client that waits for 100 Continue sends its body only after the admission', async () => {
  const expecting = (token: string, type: string) =>
    requestBytes({
      method: 'POST',
      target: '/api/v1/notes',
      fields: { Authorization: `Bearer ${token}`, 'Content-Type': type, 'Content-Length': '9', Expect: '100-continue' },
    })
  for (const [token, type, status] of [
    ['x', 'application/json', 401],
    [server.token({ role: 'viewer' }), 'application/json', 403],
    [server.token({ role: 'sender' }), 'text/plain', 415],
  ] as const) {
    const text = await conversation(server.port, expecting(token, type))
    expect([text.includes('100 Continue'), responsesIn(text)[0]?.status]).toEqual([false, status])
  }
  const text = await conversation(server.port, expecting(server.token({ role: 'sender' }), 'application/json'), {
    written: (socket) => socket.once('data', () => socket.write('{"a/b":7}')),
  })
  expect(responsesIn(text).map(({ status }) => status)).toEqual([100, 200])
  const ofOld = `${expecting(server.token({ role: 'sender' }), 'application/json').replace('HTTP/1.1', 'HTTP/1.0')}{"a/b":7}`
  expect(responsesIn(await conversation(server.port, ofOld)).map(({ status }) => status)).toEqual([200])
  const other = requestBytes({ target: '/files/x', fields: { Expect: 'the-impossible' } })
  handled = []
  expectRefusal(await raw(other), 417, 'expectation-failed')
})

test('wild bytes never reach a handler, and the server answers afterwards', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
      const text = await conversation(server.port, Buffer.from(bytes).toString('latin1'), { written: (socket) => socket.end() }).catch(
        () => '',
      )
      for (const response of responsesIn(text)) expectFields(response)
      expect(handled).toEqual([])
    }),
    { numRuns: 100 },
  )
  expect((await raw(requestBytes({ target: '/files/x' }))).status).toBe(200)
})
