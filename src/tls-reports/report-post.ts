/**
 * Posts a report to an https: URI (RFC 8460 §5.4) through the Net port: status 2xx, no redirects, 60 s in all. The certificate of the server is not
 * verified, because a report about broken TLS has to arrive.
 */
import { request } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { connect } from 'node:tls'
import { isPublicAddress } from '../delivery/routing/public-address.ts'
import { errorMessage } from '../system/caught-error.ts'
import { SECOND, type Clock, type Duration } from '../system/clock.ts'
import type { Net } from '../system/net.ts'

const CONNECT: Duration = 10 * SECOND
const WHOLE: Duration = 60 * SECOND

export interface PostDeps {
  readonly net: Net
  readonly clock: Clock
  /** True when the server may have a private address (smtp_allow_private_addresses). */
  readonly allowPrivate: boolean
}

/** Resolves with the reason of a failure; undefined when the report has arrived. */
export async function postReport(uri: string, report: Uint8Array, deps: PostDeps): Promise<string | undefined> {
  const { net, allowPrivate } = deps
  let url: URL
  try {
    url = new URL(uri)
  } catch {
    return 'it is no URL'
  }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const answers = isIP(host) === 0 ? await Promise.all([net.lookupAddresses(host, 4), net.lookupAddresses(host, 6)]) : []
  const found = isIP(host) === 0 ? answers.flatMap((answer) => (answer.kind === 'found' ? answer.records : [])) : [host]
  const [address] = found.filter((one) => allowPrivate || isPublicAddress(one))
  if (address === undefined) return found.length > 0 ? `${host} has no public address` : `${host} has no address`
  try {
    const port = url.port === '' ? 443 : Number(url.port)
    return await overSocket(await net.dial({ address, port, timeout: CONNECT }), { url, host, report }, deps)
  } catch (error) {
    return `cannot connect to ${host}[${address}]: ${errorMessage(error)}`
  }
}

interface Post {
  readonly url: URL
  readonly host: string
  readonly report: Uint8Array
}

function overSocket(plain: Socket, { url, host, report }: Post, { clock }: Pick<PostDeps, 'clock'>): Promise<string | undefined> {
  return new Promise((resolve) => {
    const secure = connect({ socket: plain, rejectUnauthorized: false, ...(isIP(host) === 0 ? { servername: host } : {}) })
    const end = (reason: string | undefined): void => {
      limit.cancel()
      resolve(reason)
      secure.destroy()
      plain.destroy()
    }
    const limit = clock.after(WHOLE, () => end('no answer within 60 s'))
    plain.on('error', (error) => end(error.message))
    secure.on('error', (error) => end(error.message))
    secure.once('secureConnect', () => {
      const headers = { 'Content-Type': 'application/tlsrpt+gzip', 'Content-Length': report.length, Connection: 'close' }
      const asked = request({
        createConnection: () => secure,
        method: 'POST',
        host: url.host,
        path: `${url.pathname}${url.search}`,
        headers,
      })
      asked.on('error', (error) => end(error.message))
      asked.on('response', ({ statusCode = 0 }) => end(statusCode >= 200 && statusCode < 300 ? undefined : `status ${statusCode}`))
      asked.end(report)
    })
  })
}
