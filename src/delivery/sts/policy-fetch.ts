/**
 * Fetches the policy of a domain over HTTPS (RFC 8461 §3.3) through the Net port: TLS 1.2 or newer with a trusted certificate that names
 * the host, status 200, no redirects, `text/plain`, at most 64 kB, 10 s for each step and 60 s in all.
 */
import { request, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { errorMessage } from '../../system/caught-error.ts'
import { SECOND, type Clock, type Duration } from '../../system/clock.ts'
import type { Net } from '../../system/net.ts'
import { isPublicAddress } from '../routing/public-address.ts'
import { namesNone } from '../tls/certificate-names.ts'
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

/** Limits the time of the steps of one fetch, and of the whole fetch. At a limit it closes the socket of the current step. */
class StepLimit {
  readonly #clock: Clock
  readonly #end: Duration
  readonly #expire: (why: string) => void
  #timer

  constructor(clock: Clock, expire: (why: string) => void) {
    this.#clock = clock
    this.#end = clock.monotonic() + WHOLE
    this.#expire = expire
    this.#timer = this.#arm()
  }

  /** Begins the next step. */
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
  const host = policyHost(domain)
  const found = await addressesOf(host, deps)
  if ('reason' in found) return failed(found.reason)
  let last: Fetched = failed(`${host} has no address`)
  for (const address of found.addresses) {
    try {
      const socket = await deps.net.dial({ address, port: PORT, timeout: STEP })
      return await overSocket(socket, host, deps)
    } catch (error) {
      last = failed(`cannot connect to ${host}[${address}]: ${errorMessage(error)}`)
    }
  }
  return last
}

/** At most this many addresses are tried. */
const ADDRESSES = 2

async function addressesOf(host: string, { net, allowPrivate }: FetchDeps) {
  const answers = await Promise.all([net.lookupAddresses(host, 4), net.lookupAddresses(host, 6)])
  const all = answers.flatMap((answer) => (answer.kind === 'found' ? answer.records : []))
  const addresses = all.filter((address) => allowPrivate || isPublicAddress(address)).slice(0, ADDRESSES)
  if (addresses.length > 0) return { addresses }
  if (all.length > 0) return { reason: `${host} has no public address; see smtp_allow_private_addresses` }
  const [failure] = answers.filter((answer) => answer.kind === 'failed')
  return { reason: failure === undefined ? `${host} has no address` : `the look-up of ${host} failed: ${failure.reason}` }
}

/** Performs TLS and the request over an open connection, which it closes. */
function overSocket(plain: Socket, host: string, { clock, ca }: FetchDeps): Promise<Fetched> {
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
    const limit = new StepLimit(clock, (why) => end(failed(`${host}: ${why}`)))
    plain.on('error', (error) => end(failed(`${host}: ${error.message}`)))
    // Node sets `authorizationError` of a socket that it then destroys for its certificate.
    secure.on('error', (error) => end(failed(`${host}: ${error.message}`, isUnauthorized(secure))))
    secure.once('secureConnect', () => {
      limit.next()
      const asked = request({ createConnection: () => secure, host, path: PATH, headers: { Connection: 'close', Accept: 'text/plain' } })
      asked.on('error', (error) => end(failed(`${host}: ${error.message}`)))
      asked.on('response', (response) => {
        limit.next()
        void readPolicy(response, limit).then((result) => end(result.kind === 'failed' ? failed(`${host}: ${result.reason}`) : result))
      })
      asked.end()
    })
  })
}

const isUnauthorized = (socket: TLSSocket): boolean => (socket.authorizationError as Error | string | null | undefined) != null

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
