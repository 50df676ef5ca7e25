/** Authentication of a request by its session or token: the client, with its name in the audit log. */
import type { Client } from '../http/requests/forwarded-client.ts'
import { percentDecoded } from '../http/requests/percent-encoding.ts'
import type { AuthenticatedClient } from '../http/requests/requester.ts'
import type { Credential } from '../http/web-admission.ts'
import type { LocalToken } from './local-token.ts'
import type { Sessions } from './sessions.ts'
import { tokenWith, type TokenDeps } from './tokens.ts'

interface AuthenticationDeps {
  readonly sessions: Sessions
  /** Throws while the queue is not open. */
  readonly tokens: () => TokenDeps
  readonly local: Pick<LocalToken, 'matches' | 'write'>
}

/** True while the credential is valid. The call does not count as a use of the session. */
export const confirmation =
  ({ sessions, tokens, local }: AuthenticationDeps) =>
  async (credential: Credential): Promise<boolean> => {
    switch (credential.kind) {
      case 'local':
        return local.matches(credential.text)
      case 'session':
        return sessions.isOpen(credential.id)
      case 'token':
        return (await tokenWith(credential.text, tokens())) !== null
    }
  }

/**
 * The client with this credential; null when there is none. When a trusted proxy has authenticated a user, the session gets the user's
 * name, not the user's rights.
 */
export const authentication =
  ({ sessions, tokens, local }: AuthenticationDeps) =>
  async (credential: Credential, { address, user: forwardedUser }: Client): Promise<AuthenticatedClient | null> => {
    switch (credential.kind) {
      case 'local':
        if (local.matches(credential.text))
          return { name: percentDecoded(credential.user) ?? credential.user, role: 'local', content: true, destinations: null, address }
        // The file was removed or replaced, or the disk was full: the command reads the file again.
        await local.write()
        return null
      case 'session': {
        const found = sessions.userOf(credential.id)
        if (found === null) return null
        return { name: `page:${forwardedUser ?? found.user}`, role: found.role, content: found.content, destinations: null, address }
      }
      case 'token': {
        const found = await tokenWith(credential.text, tokens())
        if (found === null) return null
        const { role, content, destinations } = found
        return { name: `token:${found.name}`, role, content: content || role === 'admin', destinations, address }
      }
    }
  }
