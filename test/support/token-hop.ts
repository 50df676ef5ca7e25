/** A configured next hop with TLS and AUTH by a script, and a relay that logs in with access tokens. */
import { commandClients } from './oauth-clients.ts'
import { SmtpAgentHarness, type Delivered, type WorldOptions } from './smtp-agent-harness.ts'
import type { ServerScript } from './scripted-server.ts'

export const USER = 'ann@example.com'

/** A token of the length that an authority issues. `nth` counts from 1. */
export const tokenOf = (nth: number): string =>
  `ey${Buffer.from(`{"alg":"RS256","nth":${nth}}`).toString('base64url')}.claims-${nth}.sig_${nth}`

export interface TokenHopOptions {
  readonly script?: ServerScript
  readonly mechanisms?: string
  readonly config?: readonly string[]
  readonly user?: string
  /** A password in place of access tokens. */
  readonly password?: string
  /** Output of the request for a token; the default is `tokenOf`. */
  readonly answer?: (nth: number) => Promise<string>
}

export class TokenHop {
  readonly far: SmtpAgentHarness
  /** Number of requests for a token. */
  requests = 0

  constructor({ script = {}, mechanisms = 'PLAIN LOGIN XOAUTH2', config = [], user = USER, password = '', answer }: TokenHopOptions = {}) {
    const runTokenCommand = () => {
      this.requests++
      return answer?.(this.requests) ?? Promise.resolve(`${tokenOf(this.requests)}\n3600`)
    }
    const options: WorldOptions = {
      config: [
        'relayhost=[hop.example.com]:587',
        'smtp_tls_security_level=encrypt',
        'smtp_sasl_password_maps=/somewhere',
        'smtp_sasl_oauth_token_command=token',
        ...config,
      ],
      agent: { secrets: { passwords: `[hop.example.com]:587 ${user}:${password}\n` } },
      oauth: commandClients(runTokenCommand),
    }
    this.far = new SmtpAgentHarness(options)
    const ehlo = `250-hop\r\n250-PIPELINING\r\n250-STARTTLS\r\n250 AUTH ${mechanisms}`
    this.far.host('hop.example.com', '192.0.2.9', { ehlo, starttls: '220 2.0.0 Ready', ...script }, 587)
  }

  deliver(): Promise<Delivered> {
    return this.far.deliver({ to: ['bob@example.net'] })
  }

  /** Lines of all sessions from AUTH to MAIL. */
  get authLines(): readonly string[] {
    const isOther = (line: string) => /^(?:EHLO|STARTTLS|MAIL|RCPT|DATA|RSET|QUIT)/.test(line)
    return this.far.sessions.flatMap(({ commands }) => commands.filter((line) => !isOther(line)))
  }
}

/** The text of a 334 reply. */
export const challengeReply = (object: unknown): string => `334 ${Buffer.from(JSON.stringify(object)).toString('base64')}`
