/**
 * Parses the header of the PROXY protocol, versions 1 and 2, with which a proxy such as HAProxy names the client of a connection
 * (https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt). Functions of bytes, without effects.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { canonicalAddress } from '../../config/values/networks.ts'

type ProxyHeader =
  /** The bytes may be the beginning of a header. */
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'malformed'; readonly why: string }
  | {
      readonly kind: 'complete'
      /** Octets of the header; those after it belong to the client. */
      readonly length: number
      /** Address of the client; null when the connection is the proxy's own or has no known client. */
      readonly client: string | null
    }

/** First octets of a version 2 header. */
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const PREFIX = Buffer.from('PROXY ', 'latin1')

/** Maximum octets of a version 1 header, the line end included. */
const LINE_LIMIT = 107
/** Octets of a version 2 header before the addresses. */
const FIXED = 16
/** Maximum octets after the fixed part of a version 2 header. The protocol allows 65,535; proxies send some hundreds. */
const LENGTH_LIMIT = 4096

const INCOMPLETE: ProxyHeader = { kind: 'incomplete' }
const malformed = (why: string): ProxyHeader => ({ kind: 'malformed', why })

/** Parses the header at the beginning of `bytes`. */
export function parseProxyHeader(bytes: Uint8Array): ProxyHeader {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (begins(buffer, PREFIX)) return buffer.length < PREFIX.length ? INCOMPLETE : parseLine(buffer)
  if (begins(buffer, SIGNATURE)) return parseBinary(buffer)
  return malformed('unrecognized protocol header')
}

/** True when `buffer` and `start` agree in all octets that both have. */
function begins(buffer: Buffer, start: Buffer): boolean {
  const length = Math.min(buffer.length, start.length)
  return buffer.subarray(0, length).equals(start.subarray(0, length))
}

function parseLine(buffer: Buffer): ProxyHeader {
  const end = buffer.subarray(0, LINE_LIMIT).indexOf('\r\n')
  if (end < 0) return buffer.length < LINE_LIMIT ? INCOMPLETE : malformed('missing protocol header terminator')
  const [, protocol, client = '', server = '', ...ports] = buffer.toString('latin1', 0, end).split(' ')
  // As in Postfix, UNKNOWN is no protocol type: the address of the proxy would decide about a client that has none.
  if (protocol !== 'TCP4' && protocol !== 'TCP6') return malformed('bad or missing protocol type')
  const isAddress = protocol === 'TCP4' ? isIPv4 : isIPv6
  if (!isAddress(client)) return malformed('bad or missing client address')
  if (!isAddress(server)) return malformed('bad or missing server address')
  if (ports.length !== 2 || !ports.every(isPort)) return malformed('bad or missing port')
  return { kind: 'complete', length: end + 2, client: canonicalAddress(client) }
}

const isPort = (text: string): boolean => /^(?:0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535

function parseBinary(buffer: Buffer): ProxyHeader {
  if (buffer.length < FIXED) return INCOMPLETE
  const [versionAndCommand, protocol, length] = [buffer.readUInt8(12), buffer.readUInt8(13), buffer.readUInt16BE(14)]
  if (versionAndCommand >> 4 !== 2) return malformed('unrecognized protocol version')
  const command = versionAndCommand & 0x0f
  if (command > 1) return malformed('bad command in proxy header')
  if (length > LENGTH_LIMIT) return malformed('too long a protocol header')
  const hasNoClient = command === 0 || protocol === 0
  const family = FAMILIES.get(protocol)
  if (!hasNoClient && family === undefined) return malformed('unsupported network protocol')
  if (!hasNoClient && family !== undefined && length < family.octets) return malformed('short address field')
  if (buffer.length < FIXED + length) return INCOMPLETE
  const client = hasNoClient || family === undefined ? null : family.read(buffer.subarray(FIXED))
  return { kind: 'complete', length: FIXED + length, client }
}

interface AddressFamily {
  /** Octets of both addresses and both ports. */
  readonly octets: number
  /** Returns the client's address, which is the first. */
  readonly read: (addresses: Buffer) => string
}

/** Families by the octet of the header: TCP over IPv4 and over IPv6. */
const FAMILIES: ReadonlyMap<number, AddressFamily> = new Map([
  [0x11, { octets: 12, read: (addresses) => addresses.subarray(0, 4).join('.') }],
  [0x21, { octets: 36, read: (addresses) => canonicalAddress(groupsOf(addresses.subarray(0, 16))) }],
])

const groupsOf = (address: Buffer): string => (address.toString('hex').match(/.{4}/g) ?? []).join(':')
