/** Requests to an authority: on real sockets without TLS, and over TLS in a world. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { askAuthority } from '../../src/oauth/authority.ts'
import { realClock } from '../support/real-clock.ts'
import { systemNet } from '../../src/system/system-net.ts'
import { createWorld } from '../../src/testkit/index.ts'

const FORM = new URLSearchParams({ grant_type: 'client_credentials', client_secret: 'a&b' })

test('a loopback authority is asked without TLS', async () => {
  const asked: unknown[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const { method, url, headers } = request
      asked.push([method, url, headers.host, headers['content-type'], headers['content-length'], body])
      response.writeHead(401).end('{"error":"invalid_client"}')
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const reply = await askAuthority({ net: systemNet, clock: realClock }, null)(`http://127.0.0.1:${port}/token?v=2`, FORM)
  server.close()
  expect(reply).toEqual({ kind: 'reply', status: 401, body: '{"error":"invalid_client"}' })
  const body = 'grant_type=client_credentials&client_secret=a%26b'
  expect(asked).toEqual([['POST', '/token?v=2', `127.0.0.1:${port}`, 'application/x-www-form-urlencoded', String(body.length), body]])
})

test('an authority whose certificate is not trusted is sent nothing', async () => {
  await using world = await createWorld()
  const authority = world.authority({ clients: { app: { secret: 'a&b' } } })
  expect(await askAuthority(world, null)(authority.tokenUrl, FORM)).toEqual({
    kind: 'failed',
    why: expect.stringMatching(/^login\.microsoftonline\.com: no TLS with login\.microsoftonline\.com: .*certificate/) as string,
  })
  expect(authority.requests()).toEqual([])
})
