/** Listen addresses: `127.0.0.1:2525`, `[::1]:25`, `*:25` for all addresses, or only a port. */
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import { isIP } from 'node:net'
import type { Endpoint, ListenOptions } from '../../system/net.ts'
import type { Family } from './values.ts'

const NAMES: Readonly<Record<Family, string>> = { ipv4: 'IPv4', ipv6: 'IPv6' }

/** Throws an Error that names `parameter` when the host is an address of a family that is not enabled. */
export function assertFamily(host: string, parameter: string, families: readonly Family[]): void {
  const version = isIP(host)
  const family = version === 6 ? 'ipv6' : 'ipv4'
  if (version === 0 || families.includes(family)) return
  throw new Error(
    `${parameter}: ${host} is an ${NAMES[family]} address, and inet_protocols has no ${family}: add it, or remove the address`,
  )
}

/**
 * The address to open for a listen address under inet_protocols. `*` stands for all addresses of the enabled families. Throws an
 * Error that names `parameter` when the text is not a listen address, or has an address of a family that is not enabled.
 */
export function listenAt(text: string, parameter: string, families: readonly Family[]): ListenOptions {
  const { address, port } = parseListen(text, parameter)
  const isAny = !text.includes('[') && address === '::'
  if (isAny && !families.includes('ipv6')) return { address: '0.0.0.0', port }
  assertFamily(address, parameter, families)
  return address === '::' && !families.includes('ipv4') ? { address, port, ipv6Only: true } : { address, port }
}

/**
 * Parses a listen address; the address is `::` for `*`, or when only a port is given. Throws an Error that names `parameter` for
 * any other text.
 */
export function parseListen(text: string, parameter: string): Endpoint {
  const [, bracketed, plain, digits] = /^(?:(?:\[([^\]]+)\]|([^:[\]]*)):)?(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits ?? Number.NaN)
  if (!(port <= 65_535)) throw new Error(`${parameter}: expected an address and a port such as 127.0.0.1:2525 or [::1]:25, got ${text}`)
  const host = bracketed ?? plain ?? '*'
  return { address: host === '*' || host === '' ? '::' : host, port }
}

/** An address and port of the configuration cannot be opened (EX_UNAVAILABLE); `cause` holds the system's error. */
export class CannotListen extends Error {
  override readonly name = 'CannotListen'
  /** EX_UNAVAILABLE. */
  readonly exitCode = 69
}

const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process has this port: stop it, or name another port',
  EADDRNOTAVAIL: 'no interface of this machine has this address: name one of `ip address`, or * for all',
  EAFNOSUPPORT: 'this machine has no protocol of this address: set inet_protocols = "ipv4", or name an address that it has',
  EACCES: 'ports below 1024 need root: start with --user NAME as root, or inherit the port from systemd',
}

/** Opens the port that `parameter` names. Rejects with CannotListen, which names the parameter, the port and a remedy. */
export async function openPort<T>(parameter: string, { address, port }: Endpoint, open: () => Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause
    const at = placeText({ address, port })
    const remedy = REMEDIES[errorCode(cause)] ?? errorMessage(cause)
    throw new CannotListen(`${parameter}: cannot listen on ${at}: ${remedy} (${errorCode(cause)})`, { cause })
  }
}

/** An address with its port, as in a URL. */
export const placeText = ({ address, port }: Endpoint): string => (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`)
