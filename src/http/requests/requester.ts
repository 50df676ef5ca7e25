/** The authenticated client of a request, and the roles that routes need. */
import type { Actor } from '../../store/records/audit-log.ts'

/** Role of a client. `admin` includes all others, `operator` includes `viewer`; `sender` submits mail only. */
export const CLIENT_ROLES = ['viewer', 'operator', 'sender', 'admin'] as const
export type ClientRole = (typeof CLIENT_ROLES)[number]

/**
 * Role that a route needs. `anyone` requires no authentication, `known` any role. `local` is a command on this machine that has read
 * `local.token`, as only the owner of the queue and root can; it includes all roles.
 */
export type Role = 'anyone' | 'known' | ClientRole | 'local'

export interface Rights {
  readonly role: ClientRole
  /** True for a client that may read the header and body of messages. */
  readonly content: boolean
  /** Pattern of the destinations to which the client is restricted; null for all. */
  readonly destinations: string | null
}

/** A client whose credential is known. */
export interface AuthenticatedClient extends Omit<Rights, 'role'> {
  readonly role: ClientRole | 'local'
  /** `page:` and the user of a session, `token:` and the name of a token, or the user of a local command. */
  readonly name: string
  /** Address of the client; `local` for the Unix socket. */
  readonly address: string
}

/** A client with the request that it makes. */
export interface Requester extends AuthenticatedClient {
  readonly requestId: string
}

/** Name of a client in the audit log, such as `page:alice (127.0.0.1)`, and `alice` for a local command. */
export const auditName = ({ name, address, role }: Pick<AuthenticatedClient, 'name' | 'address' | 'role'>): string =>
  role === 'local' ? name : `${name} (${address})`

export const actorOf = (requester: Requester): Actor => ({ who: auditName(requester), requestId: requester.requestId })

const INCLUDED: Readonly<Record<AuthenticatedClient['role'], readonly Role[]>> = {
  viewer: ['anyone', 'known', 'viewer'],
  operator: ['anyone', 'known', 'viewer', 'operator'],
  sender: ['anyone', 'known', 'sender'],
  admin: ['anyone', 'known', 'viewer', 'operator', 'sender', 'admin'],
  local: ['anyone', 'known', 'viewer', 'operator', 'sender', 'admin', 'local'],
}

/** True when a client of this role may use a route that needs `needed`. */
export const grants = (role: AuthenticatedClient['role'], needed: Role): boolean => INCLUDED[role].includes(needed)
