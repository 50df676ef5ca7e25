/**
 * Posts a report to an https: URI (RFC 8460 §5.4) through the Net port: status 2xx, no redirects, 60 s in all. The certificate of the server is not
 * verified, because a report about broken TLS has to arrive.
 */
import type { Socket } from 'node:net'
import { connectToServer, hostOf, requestTo, startTls } from '../system/web-connection.ts'
import { SECOND, type Clock, type Duration } from '../system/clock.ts'
import type { Net } from '../system/net.ts'

const WHOLE: Duration = 60 * SECOND

interface PostDeps {
  readonly net: Net
  readonly clock: Clock
  /** True when the server may have a private address (smtp_allow_private_addresses). */
  readonly allowPrivate: boolean
}

/** Resolves with the reason of a failure; undefined when the report has arrived. */
export function postReport(uri: string, report: Uint8Array, deps: PostDeps): Promise<string | undefined> {
  const url = URL.parse(uri)
  if (url === null) return Promise.resolve('it is no URL')
  return new Promise((resolve) => {
    const asked = requestTo(url, {
      createConnection: (_, connected) => {
        open(url, deps).then(
          (socket) => connected(null, socket),
          (error: unknown) => connected(error as Error, undefined as never),
        )
        return undefined
      },
      method: 'POST',
      headers: { 'Content-Type': 'application/tlsrpt+gzip', 'Content-Length': report.length, Connection: 'close' },
    })
    const end = (reason: string | undefined): void => {
      limit.cancel()
      resolve(reason)
      asked.destroy()
    }
    const limit = deps.clock.after(WHOLE, () => end(`no answer within ${WHOLE / SECOND} s`))
    asked.on('error', (error) => end(error.message))
    asked.on('response', ({ statusCode = 0 }) => end(statusCode >= 200 && statusCode < 300 ? undefined : `status ${statusCode}`))
    asked.end(report)
  })
}

async function open(url: URL, { net, clock, allowPrivate }: PostDeps): Promise<Socket> {
  const port = url.port === '' ? 443 : Number(url.port)
  const remedy = 'see smtp_allow_private_addresses'
  const server = { host: hostOf(url), port, names: 'dns', allowPrivate, remedy, end: clock.monotonic() + WHOLE } as const
  return startTls(await connectToServer(server, { net, clock }), server, clock, { rejectUnauthorized: false })
}
