/** Login codes and sessions of the page. They are kept in memory: a restart logs out. Only hashes of the secrets are kept. */
import type { ClientRole } from '../http/requests/requester.ts'
import { hours, seconds, type Clock, type Duration, type QueueTime } from '../system/clock.ts'
import type { Random } from '../system/random.ts'
import { hashOf, newCode, newSessionId, typedCode } from './secrets.ts'

export interface PageUser {
  /** Name of the user who ran `deferd page`. */
  readonly user: string
  readonly role: ClientRole
  /** True for a user who may read the header and body of messages. */
  readonly content: boolean
}

/** Time in which a code can be used, once. */
export const CODE_LIFETIME: Duration = seconds(60)
/** The oldest code becomes invalid for a further one. */
const MOST_CODES = 100
/** A session ends after this time without a request. */
const IDLE_LIMIT: Duration = hours(12)
/** The session that has been idle longest ends for a further one. */
const MOST_SESSIONS = 10

interface Code extends PageUser {
  readonly expiresAt: QueueTime
}

interface Session extends PageUser {
  readonly usedAt: QueueTime
}

interface SessionsDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly random: Random
}

export class Sessions {
  readonly #deps: SessionsDeps
  /** Codes by hash, oldest first. */
  readonly #codes = new Map<string, Code>()
  /** Sessions by hash, the session that has been idle longest first. */
  readonly #sessions = new Map<string, Session>()

  constructor(deps: SessionsDeps) {
    this.#deps = deps
  }

  /** Makes a code for a login. */
  newCode(user: PageUser): string {
    const { clock, random } = this.#deps
    const code = newCode(random)
    this.#codes.set(hashOf(code), { ...user, expiresAt: clock.now() + CODE_LIFETIME })
    shorten(this.#codes, MOST_CODES)
    return code
  }

  /** Begins a session with a code, and returns the id of the session. Returns null for a code that is unknown, used or expired. */
  logIn(text: string): string | null {
    const { clock, random } = this.#deps
    const hash = hashOf(typedCode(text))
    const code = this.#codes.get(hash)
    this.#codes.delete(hash)
    if (code === undefined || clock.now() >= code.expiresAt) return null
    const { user, role, content } = code
    const id = newSessionId(random)
    this.#sessions.set(hashOf(id), { user, role, content, usedAt: clock.now() })
    shorten(this.#sessions, MOST_SESSIONS)
    return id
  }

  /** The user of a session; null when the session has ended. The call counts as a use of the session. */
  userOf(id: string): PageUser | null {
    const now = this.#deps.clock.now()
    const hash = hashOf(id)
    const session = this.#sessions.get(hash)
    this.#sessions.delete(hash)
    if (session === undefined || now - session.usedAt >= IDLE_LIMIT) return null
    this.#sessions.set(hash, { ...session, usedAt: now })
    const { user, role, content } = session
    return { user, role, content }
  }

  /** True while a session has not ended. Does not count as a use. */
  isOpen(id: string): boolean {
    const session = this.#sessions.get(hashOf(id))
    return session !== undefined && this.#deps.clock.now() - session.usedAt < IDLE_LIMIT
  }

  /** Ends all sessions of the user of this session. */
  logOut(id: string): void {
    const user = this.userOf(id)?.user
    for (const [hash, session] of this.#sessions) if (session.user === user) this.#sessions.delete(hash)
  }
}

/** Removes the first entries until `most` remain. */
function shorten(entries: Map<string, unknown>, most: number): void {
  for (const hash of entries.keys()) {
    if (entries.size <= most) return
    entries.delete(hash)
  }
}
