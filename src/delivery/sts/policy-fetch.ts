/**
 * Fetches the policy of a domain over HTTPS (RFC 8461 §3.3) through the Net port: TLS 1.2 or newer with a trusted certificate that names
 * the host, status 200, no redirects, `text/plain`, at most 64 kB, 10 s for each step and 60 s in all.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { errorMessage } from '../../system/caught-error.ts'
import { SECOND, type Clock, type Duration } from '../../system/clock.ts'
import type { Net } from '../../system/net.ts'
import { connectToServer, requestTo, type WebServer } from '../../system/web-connection.ts'
import { namesNone } from '../tls/certificate-names.ts'
import { isCertificateRefused } from '../tls/tls-connection.ts'
import { policyHost } from './sts-record.ts'

const STEP: Duration = 10 * SECOND
const WHOLE: Duration = 60 * SECOND
const LARGEST = 64 * 1024
const PORT = 443
const PATH = '/.well-known/mta-sts.txt'

export interface FetchDeps {
  readonly net: Net
  readonly clock: Clock
  /** Trusted CA certificates (PEM); those of Node when absent. */
  readonly ca?: string | undefined
  /** True when the policy host may have a private address (smtp_allow_private_addresses). */
  readonly allowPrivate: boolean
}

export type Fetched =
  | { readonly kind: 'text'; readonly text: string }
  /** `webpki` is true when the certificate of the policy host is not valid. */
  | { readonly kind: 'failed'; readonly reason: string; readonly webpki: boolean }

const failed = (reason: string, webpki = false): Fetched => ({ kind: 'failed', reason, webpki })

/** Limits the time of the steps of one fetch after its connection is open, and of the whole fetch. At a limit it closes the socket. */
class StepLimit {
  readonly #clock: Clock
  readonly #end: Duration
  readonly #expire: (why: string) => void
  #timer

  /** `end` is on the monotonic clock. */
  constructor(clock: Clock, end: Duration, expire: (why: string) => void) {
    this.#clock = clock
    this.#end = end
    this.#expire = expire
    this.#timer = this.#arm()
  }

  next(): void {
    this.#timer.cancel()
    this.#timer = this.#arm()
  }

  close(): void {
    this.#timer.cancel()
  }

  #arm() {
    const left = Math.max(0, this.#end - this.#clock.monotonic())
    return this.#clock.after(Math.min(STEP, left), () => this.#expire(left <= STEP ? 'no policy within 60 s' : 'no answer within 10 s'))
  }
}

/** Fetches the text of the policy. A failure is a value. */
export async function fetchPolicy(domain: string, deps: FetchDeps): Promise<Fetched> {
  const { clock, allowPrivate } = deps
  const server = { host: policyHost(domain), port: PORT, names: 'dns', end: clock.monotonic() + WHOLE } as const
  try {
    const socket = await connectToServer({ ...server, allowPrivate, remedy: 'see smtp_allow_private_addresses' }, deps)
    return await overSocket(socket, server, deps)
  } catch (error) {
    return failed(errorMessage(error))
  }
}

/** Performs TLS and the request over an open connection, which it closes, until `end`. */
function overSocket(plain: Socket, { host, end: last }: Pick<WebServer, 'host' | 'end'>, { clock, ca }: FetchDeps): Promise<Fetched> {
  return new Promise((resolve) => {
    const secure: TLSSocket = connect({
      socket: plain,
      servername: host,
      minVersion: 'TLSv1.2',
      rejectUnauthorized: true,
      checkServerIdentity: (_, certificate) => namesNone(certificate, [host]),
      ...(ca === undefined ? {} : { ca }),
    })
    const end = (result: Fetched): void => {
      limit.close()
      resolve(result)
      secure.destroy()
      plain.destroy()
    }
    const limit = new StepLimit(clock, last, (why) => end(failed(`${host}: ${why}`)))
    plain.on('error', (error) => end(failed(`${host}: ${error.message}`)))
    secure.on('error', (error) => end(failed(`${host}: ${error.message}`, isCertificateRefused(secure))))
    secure.once('secureConnect', () => {
      limit.next()
      const headers = { Connection: 'close', Accept: 'text/plain' }
      const asked = requestTo({ host, pathname: PATH, search: '' }, { createConnection: () => secure, headers })
      asked.on('error', (error) => end(failed(`${host}: ${error.message}`)))
      asked.on('response', (response) => {
        limit.next()
        void readPolicy(response, limit).then((result) => end(result.kind === 'failed' ? failed(`${host}: ${result.reason}`) : result))
      })
      asked.end()
    })
  })
}

async function readPolicy(response: IncomingMessage, limit: StepLimit): Promise<Fetched> {
  const { statusCode, headers } = response
  if (statusCode !== 200) return failed(`status ${statusCode ?? 0} instead of 200`)
  if (!/^text\/plain\s*(?:;|$)/i.test(headers['content-type'] ?? '')) return failed('the content is not text/plain')
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      limit.next()
      size += chunk.length
      if (size > LARGEST) return failed('the policy is larger than 64 kB')
      chunks.push(chunk)
    }
  } catch (error) {
    return failed(errorMessage(error))
  }
  return { kind: 'text', text: Buffer.concat(chunks).toString('utf8') }
}
