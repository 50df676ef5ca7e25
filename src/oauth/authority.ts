/**
 * Requests to the endpoints of an authority (RFC 6749 §3.2) through the Net port: POST over TLS 1.2 or newer with a trusted certificate that names
 * the host, or without TLS to a loopback host. 30 s in all, at most 64 kB, no redirects.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
// As a namespace: an old Node, which `system/supported-node` names, has no getCACertificates to import.
import * as tls from 'node:tls'
import { errorMessage } from '../system/caught-error.ts'
import { SECOND, type Clock, type Duration } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import { connectToServer, hostOf, requestTo, startTls } from '../system/web-connection.ts'

export type AuthorityReply =
  | { readonly kind: 'reply'; readonly status: number; readonly body: string }
  /** No reply. `why` names the host. */
  | { readonly kind: 'failed'; readonly why: string }

/** Posts a form to an endpoint. A failure is a value. */
export type AskAuthority = (url: string, form: URLSearchParams) => Promise<AuthorityReply>

export interface AuthorityDeps {
  readonly net: Pick<Net, 'dial' | 'lookupAddresses' | 'lookupHost'>
  readonly clock: Clock
}

const LIMIT: Duration = 30 * SECOND
const LARGEST = 64 * 1024

/**
 * `ca` replaces the trusted CA certificates, which are those of Node, of NODE_EXTRA_CA_CERTS and of the system. The result keeps the TLS context
 * of its first request.
 */
export function askAuthority(deps: AuthorityDeps, ca: string | null): AskAuthority {
  let own: tls.SecureContext | undefined
  const context = (): tls.SecureContext => (ca === null ? systemContext() : (own ??= contextOf(ca)))
  return (text, form) => {
    const url = new URL(text)
    return new Promise((resolve) => {
      const end = (reply: AuthorityReply): void => {
        limit.cancel()
        resolve(reply)
        asked.destroy()
      }
      const fail = (why: string): void => end({ kind: 'failed', why: `${url.host}: ${why}` })
      const body = form.toString()
      const asked = requestTo(url, {
        createConnection: (_, connected) => {
          open(url, context, deps).then(
            (socket) => connected(null, socket),
            (error: unknown) => connected(error as Error, undefined as never),
          )
          return undefined
        },
        method: 'POST',
        headers: {
          Accept: 'application/json',
          Connection: 'close',
          'Content-Type': 'application/x-www-form-urlencoded',
          'Content-Length': Buffer.byteLength(body),
        },
      })
      const limit = deps.clock.after(LIMIT, () => fail(`no answer within ${LIMIT / SECOND} s`))
      asked.on('error', (error) => fail(error.message))
      asked.on('response', (response) => void read(response).then(end, (error: unknown) => fail(errorMessage(error))))
      asked.end(body)
    })
  }
}

async function read(response: IncomingMessage): Promise<AuthorityReply> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > LARGEST) throw new Error(`its answer is larger than ${LARGEST} bytes`)
    chunks.push(chunk)
  }
  return { kind: 'reply', status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }
}

async function open(url: URL, context: () => tls.SecureContext, { net, clock }: AuthorityDeps): Promise<Socket> {
  const isTls = url.protocol === 'https:'
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port)
  const end = clock.monotonic() + LIMIT
  const server = { host: hostOf(url), port, names: 'system', allowPrivate: true, remedy: '', end } as const
  const socket = await connectToServer(server, { net, clock })
  return isTls ? startTls(socket, server, clock, { secureContext: context(), minVersion: 'TLSv1.2' }) : socket
}

const contextOf = (ca: string | readonly string[]): tls.SecureContext => tls.createSecureContext({ ca: [ca].flat(), minVersion: 'TLSv1.2' })

/** The context without a `ca`, for all authorities: it has some hundred certificates, which take some 10 ms to parse. */
const systemContext = (): tls.SecureContext =>
  (ofSystem ??= contextOf([...new Set([...tls.getCACertificates('default'), ...tls.getCACertificates('system')])]))
let ofSystem: tls.SecureContext | undefined
