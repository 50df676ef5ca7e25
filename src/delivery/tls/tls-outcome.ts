/** Facts of TLS of a session, as they are stored with the outcome of each recipient. Pure. */
import type { TlsFacts } from '../../mail/tls-facts.ts'
import type { SessionFailure } from '../transcript.ts'
import type { TlsConnection } from './tls-connection.ts'
import type { TlsTerms } from './tls-policy.ts'

interface SessionTls {
  readonly terms: Pick<TlsTerms, 'stated' | 'required'>
  /** Absent without TLS. */
  readonly connection?: TlsConnection | undefined
  /** Reason why the session ended before it could be used; absent when it could. */
  readonly failure?: SessionFailure | undefined
}

const STATES = { Untrusted: 'encrypted', Trusted: 'trusted', Verified: 'verified' } as const

/** The facts of a session that was opened, or of one that failed. */
export function tlsFacts({ terms: { stated, required }, connection, failure }: SessionTls): TlsFacts {
  if (connection !== undefined) {
    const { protocol, cipher, trust } = connection
    return { ...stated, state: STATES[trust], protocol, cipher }
  }
  if (failure === undefined) return { ...stated, state: 'clear' }
  switch (failure.kind) {
    case 'tls-not-offered':
      return { ...stated, state: 'not-offered' }
    case 'sts-mismatch':
      return { ...stated, state: 'refused', reason: `the policy of ${failure.domain} (id ${failure.id}) does not name the host` }
    case 'anchor':
      return { ...stated, state: 'refused' }
    case 'dane':
    case 'certificate':
      return { ...stated, state: 'refused', reason: failure.why }
    case 'tls':
      return { ...stated, state: 'undecided', reason: failure.why }
    case 'refused':
      // A host that refuses STARTTLS is used in clear, unless TLS is required.
      if (failure.stage === 'starttls') return { ...stated, state: required ? 'not-offered' : 'undecided', reason: failure.reply.raw }
      return { ...stated, state: failure.stage === 'auth' ? 'clear' : 'undecided' }
    case 'auth-unavailable':
    case 'loop':
      return { ...stated, state: 'clear' }
    case 'unreachable':
    case 'lost':
    case 'timeout':
    case 'aborted':
    case 'protocol-error':
    case 'tls-level':
    case 'no-smtputf8':
    case 'no-deliver-by':
    case 'too-big':
      return { ...stated, state: 'undecided' }
  }
}
