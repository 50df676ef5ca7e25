/**
 * Connections and requests to the web servers that a URL or a domain names: look-up, only public addresses unless others are allowed, each address
 * in turn, and TLS, within one time limit. A failure is an error with a sentence for the log.
 */
import { request, type ClientRequest, type RequestOptions } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { errorMessage } from './caught-error.ts'
import { SECOND, type Duration, type Timers } from './clock.ts'
import type { Lookup, Net } from './net.ts'
import { isPublicAddress } from './public-address.ts'

export interface WebServer {
  /** Name, or IP address without brackets. */
  readonly host: string
  readonly port: number
  /** Names are looked up in DNS, or as the programs of this machine do (Net.lookupHost). */
  readonly names: 'dns' | 'system'
  readonly allowPrivate: boolean
  /** Way to allow private addresses, for the error: `see smtp_allow_private_addresses`. */
  readonly remedy: string
  /** Time on the monotonic clock after which no connection is made, and TLS not established. */
  readonly end: Duration
}

/** Options of a request; its connection is made by `agent` or `createConnection`. */
export interface WebRequest extends Pick<RequestOptions, 'agent' | 'createConnection' | 'method'> {
  readonly headers: Readonly<Record<string, string | number>>
}

interface WebConnectionDeps {
  readonly net: Pick<Net, 'dial' | 'lookupAddresses' | 'lookupHost'>
  readonly clock: Timers
}

const MOST_ADDRESSES = 4
/** For each address. */
const CONNECT_LIMIT: Duration = 10 * SECOND

/** The host of a URL, without the brackets of an IPv6 address. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

/** Returns the first connection that is made. */
export async function connectToServer(
  { host, port, names, allowPrivate, remedy, end }: WebServer,
  deps: WebConnectionDeps,
): Promise<Socket> {
  const { net, clock } = deps
  const addresses = isIP(host) === 0 ? await addressesOf(host, names, net) : [host]
  const allowed = allowPrivate ? addresses : addresses.filter(isPublicAddress)
  if (allowed.length === 0) throw new Error(`${host} has the private address ${addresses[0] ?? ''}: ${remedy}`)
  let failure = new Error(`the look-up of ${host} took too long`)
  for (const address of allowed.slice(0, MOST_ADDRESSES)) {
    const left = end - clock.monotonic()
    if (left <= 0) break
    try {
      return await net.dial({ address, port, timeout: Math.min(CONNECT_LIMIT, left) })
    } catch (error) {
      failure = new Error(`cannot connect to ${host}[${address}]: ${errorMessage(error)}`, { cause: error })
    }
  }
  throw failure
}

/** The host, with the port unless it is the default, and the path of a URL: the parts that a request has. */
export type RequestTarget = Pick<URL, 'host' | 'pathname' | 'search'>

/**
 * Makes a request over the connection of `options`, with the Host field of RFC 9110 §7.2. Node alone would add `:80`, since it knows
 * nothing of the TLS of the connection.
 */
export const requestTo = ({ host, pathname, search }: RequestTarget, options: WebRequest): ClientRequest =>
  request({ ...options, host, path: `${pathname}${search}`, headers: { Host: host, ...options.headers } })

async function addressesOf(host: string, names: WebServer['names'], net: WebConnectionDeps['net']): Promise<readonly string[]> {
  const found =
    names === 'system' ? [await net.lookupHost(host)] : await Promise.all([net.lookupAddresses(host, 4), net.lookupAddresses(host, 6)])
  const records = found.flatMap((answer: Lookup<string>) => (answer.kind === 'found' ? answer.records : []))
  if (records.length > 0) return records
  const failure = found.find((answer) => answer.kind === 'failed')
  throw new Error(failure === undefined ? `${host} has no address` : `the look-up of ${host} failed: ${failure.reason}`)
}

/** Establishes TLS over a connection, which it closes after a failure. By default the certificate has to be trusted, and to name the host. */
export function startTls(
  plain: Socket,
  { host, end }: Pick<WebServer, 'host' | 'end'>,
  clock: Timers,
  options: ConnectionOptions = {},
): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const secure = connect({ socket: plain, ...(isIP(host) === 0 ? { servername: host } : { host }), ...options })
    const fail = (error: Error): void => {
      limit.cancel()
      plain.destroy()
      secure.destroy()
      reject(new Error(`no TLS with ${host}: ${error.message}`, { cause: error }))
    }
    const limit = clock.after(Math.max(0, end - clock.monotonic()), () => fail(new Error('no handshake in time')))
    plain.on('error', (error) => secure.destroy(error))
    secure.once('error', fail)
    secure.once('secureConnect', () => {
      limit.cancel()
      secure.off('error', fail)
      resolve(secure)
    })
  })
}
