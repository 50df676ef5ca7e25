/** The client of a request: its address and the origin that it sees, also through trusted proxies. */
import { isIP } from 'node:net'
import { canonicalAddress, type Networks } from '../../config/values/networks.ts'

export interface Client {
  /** Address of the client; `local` for the Unix socket. */
  readonly address: string
  /** Scheme of the URL that the client uses. */
  readonly scheme: 'http' | 'https'
  /** Host and port of that URL, as the field Host has them. */
  readonly host: string
  /** User whom a trusted proxy has authenticated; null without one. */
  readonly user: string | null
}

interface ConnectionFacts {
  /** Address of the peer; null for the Unix socket. */
  readonly peer: string | null
  readonly isEncrypted: boolean
  readonly host: string
  readonly forwardedFor: string | undefined
  readonly forwardedProto: string | undefined
  readonly forwardedUser: string | undefined
  readonly proxies: Pick<Networks, 'has'>
}

/** Address of a client of the Unix socket, which may have been forwarded without a field X-Forwarded-For. */
const LOCAL = 'local'

/** Form of a name in X-Forwarded-User, because names appear in the log and in the audit log. */
const USER = /^[\w.@+-]{1,64}$/

/**
 * The client of a request. The X-Forwarded fields are believed from the Unix socket, which only the owner of the queue and root can
 * open, and from the addresses of `proxies`; they are ignored from other addresses. Returns the reason of a refusal for a malformed
 * user name.
 */
export function clientOf(facts: ConnectionFacts): Client | { readonly refused: string } {
  const { peer, host, forwardedUser } = facts
  const isForwarding = peer === null || facts.proxies.has(peer)
  const isOuterEncrypted = isForwarding && facts.forwardedProto?.trim().toLowerCase() === 'https'
  const scheme = facts.isEncrypted || isOuterEncrypted ? 'https' : 'http'
  if (!isForwarding) return { address: peer, scheme, host, user: null }
  if (forwardedUser !== undefined && !USER.test(forwardedUser))
    return { refused: 'X-Forwarded-User: expected 1 to 64 letters, digits or any of ._@+-' }
  return { address: forwardedAddress(facts) ?? peer ?? LOCAL, scheme, host, user: forwardedUser ?? null }
}

/** The last address of X-Forwarded-For that is no proxy, because clients may write what they like before it. Undefined without one. */
function forwardedAddress({ forwardedFor = '', proxies }: ConnectionFacts): string | undefined {
  const addresses = forwardedFor.split(',').map((part) => part.trim().replace(/^\[(.*)\]$/, '$1'))
  const outer = addresses.findLast((address) => isIP(address) === 0 || !proxies.has(address))
  return outer === undefined || isIP(outer) === 0 ? undefined : canonicalAddress(outer)
}
