/** The authenticated client of a request, and the roles that routes need. */

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

export interface Requester extends Omit<Rights, 'role'> {
  readonly role: ClientRole | 'local'
  /** `page:` and the user of a session, `token:` and the name of a token, or the user of a local command. */
  readonly name: string
  /** Address of the client; `local` for the Unix socket. */
  readonly address: string
}

/** Name of a client in the audit log, such as `page:alice (127.0.0.1)`, and `alice` for a local command. */
export const auditName = ({ name, address, role }: Pick<Requester, 'name' | 'address' | 'role'>): string =>
  role === 'local' ? name : `${name} (${address})`

const INCLUDED: Readonly<Record<Requester['role'], readonly Role[]>> = {
  viewer: ['anyone', 'known', 'viewer'],
  operator: ['anyone', 'known', 'viewer', 'operator'],
  sender: ['anyone', 'known', 'sender'],
  admin: ['anyone', 'known', 'viewer', 'operator', 'sender', 'admin'],
  local: ['anyone', 'known', 'viewer', 'operator', 'sender', 'admin', 'local'],
}

/** True when a client of this role may use a route that needs `needed`. */
export const grants = (role: Requester['role'], needed: Role): boolean => INCLUDED[role].includes(needed)
