/** An HTTPS server of MTA-STS policies on 127.0.0.1:443, for test/interop/mta-sts.test.ts. Its argument is a file with certificate and key. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'

const POLICY = 'version: STSv1\r\nmode: enforce\r\nmx: mx.good.test\r\nmx: *.good.test\r\nmax_age: 86400\r\n'

const { cert, key } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as { readonly cert: string; readonly key: string }

createServer({ cert, key }, (request, response) => {
  const host = request.headers.host ?? ''
  if (host.startsWith('mta-sts.moved.')) return void response.writeHead(302, { location: 'https://mta-sts.good.test/' }).end()
  if (host.startsWith('mta-sts.lost.')) return void response.writeHead(404).end()
  const type = host.startsWith('mta-sts.page.') ? 'text/html' : 'text/plain'
  response.writeHead(200, { 'content-type': type }).end(host.startsWith('mta-sts.empty.') ? 'version: STSv1\n' : POLICY)
}).listen(443, '127.0.0.1', () => process.stdout.write('ready\n'))
