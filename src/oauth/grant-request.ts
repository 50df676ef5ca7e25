/** The form of a token request (RFC 6749 §4.4.2 and §6, RFC 7523 §2.1). Pure. */
import type { WallTime } from '../system/clock.ts'
import { clientAssertion, mailboxAssertion } from './client-assertion.ts'
import type { OauthClient } from './oauth-client.ts'

interface GrantFacts {
  /** Wall clock time. */
  readonly now: WallTime
  /** Unique `jti` of the proof of a client by its certificate. */
  readonly id: string
  /** Mailbox for which a service account acts. */
  readonly user: string
  /** Required for the grant refresh_token. */
  readonly refreshToken?: string | undefined
}

const JWT_BEARER_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const JWT_BEARER_PROOF = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

type Field = [name: string, value: string]

/** Fields with a value. */
const present = (...fields: readonly Field[]): readonly Field[] => fields.filter(([, value]) => value !== '')

/** The fields that prove the client. */
export function proofFields({ table, proof }: OauthClient, { now, id }: Pick<GrantFacts, 'now' | 'id'>): readonly Field[] {
  const { clientId, tokenUrl } = table
  switch (proof.kind) {
    case 'none':
      return []
    case 'secret':
      return [['client_secret', proof.secret]]
    case 'certificate': {
      const { key, thumbprint } = proof
      return [
        ['client_assertion_type', JWT_BEARER_PROOF],
        ['client_assertion', clientAssertion({ clientId, tokenUrl, key, thumbprint, now, id })],
      ]
    }
  }
}

/** The form that asks for a token. Throws an Error for a table whose tokens come from a command, or that has no login yet. */
export function grantRequest(client: OauthClient, facts: GrantFacts): URLSearchParams {
  const { grant, clientId, scope, audience, tokenUrl } = client.table
  const { user, now, refreshToken } = facts
  const ofToken = present(['scope', scope], ['audience', audience])
  const fields = (): readonly Field[] => {
    switch (grant) {
      case 'client_credentials':
        return [['grant_type', grant], ['client_id', clientId], ...ofToken, ...proofFields(client, facts)]
      case 'refresh_token':
        if (refreshToken === undefined) throw new Error('a refresh token is required')
        return [['grant_type', grant], ['client_id', clientId], ['refresh_token', refreshToken], ...ofToken, ...proofFields(client, facts)]
      case 'service_account': {
        if (client.account === null) throw new Error('a service account is required')
        const assertion = mailboxAssertion({ account: client.account, user, scope, tokenUrl, now })
        return [['grant_type', JWT_BEARER_GRANT], ['assertion', assertion], ...present(['audience', audience])]
      }
      case 'command':
        throw new Error('a command is no grant')
    }
  }
  return new URLSearchParams([...fields()])
}
