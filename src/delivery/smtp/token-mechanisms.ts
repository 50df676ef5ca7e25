/** SASL mechanisms that log in with an access token: XOAUTH2 (Google, Microsoft) and OAUTHBEARER (RFC 7628). Pure. */

export type TokenMechanism = 'XOAUTH2' | 'OAUTHBEARER'

interface TokenLogin {
  readonly user: string
  readonly token: string
  /** Host and port to which the client is connected. */
  readonly host: string
  readonly port: number
}

/** An authorization identity in the header of GS2 (RFC 5801 §4). */
const saslName = (user: string): string => user.replaceAll('=', '=3D').replaceAll(',', '=2C')

const RESPONSES: Readonly<Record<TokenMechanism, (login: TokenLogin) => string>> = {
  XOAUTH2: ({ user, token }) => `user=${user}\u0001auth=Bearer ${token}\u0001\u0001`,
  OAUTHBEARER: ({ user, token, host, port }) =>
    `n,a=${saslName(user)},\u0001host=${host}\u0001port=${port}\u0001auth=Bearer ${token}\u0001\u0001`,
}

/** The initial response, in base64. */
export const initialResponse = (mechanism: TokenMechanism, login: TokenLogin): string =>
  Buffer.from(RESPONSES[mechanism](login)).toString('base64')

/** The line that answers a challenge with the reason of a failure; the server then refuses the login. */
export const FAILURE_ANSWERS: Readonly<Record<TokenMechanism, string>> = { XOAUTH2: '', OAUTHBEARER: 'AQ==' }

export const isTokenMechanism = (name: string): name is TokenMechanism => Object.hasOwn(RESPONSES, name)
