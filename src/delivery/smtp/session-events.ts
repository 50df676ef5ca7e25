/** Words for the end of a session, in its record. Pure. */
import type { TlsConnection } from '../tls/tls-connection.ts'
import type { SessionFailure } from '../transcript.ts'

/** Null for a failure that the reply before it explains. */
export function failureEvent(failure: SessionFailure): string | null {
  switch (failure.kind) {
    case 'refused':
    case 'anchor':
      return null
    case 'unreachable':
      return `cannot connect: ${failure.why}`
    case 'lost':
      return `connection lost in ${failure.stage}`
    case 'timeout':
      return `timeout in ${failure.stage}`
    case 'aborted':
      return `stopped by this relay in ${failure.stage}`
    case 'protocol-error':
      return `protocol error in ${failure.stage}: ${failure.what}`
    case 'loop':
      return 'the host has the name of this relay'
    case 'tls':
      return `TLS failed: ${failure.why}`
    case 'certificate':
      return `certificate refused: ${failure.why}`
    case 'tls-not-offered':
      return 'TLS is required and not offered'
    case 'dane':
      return `DANE: ${failure.why}`
    case 'sts-mismatch':
      return `the MTA-STS policy of ${failure.domain} does not name the host`
    case 'tls-level':
      return `TLS at connect does not go with the level ${failure.level}`
    case 'auth-unavailable':
      return `no login: ${failure.why}`
    case 'no-smtputf8':
      return 'SMTPUTF8 is needed and not offered'
    case 'no-deliver-by':
      return 'the deliver-by time is not taken'
    case 'too-big':
      return `the message of ${failure.size} bytes is above the limit of ${failure.limit}`
  }
}

/** For example `TLSv1.3 with TLS_AES_256_GCM_SHA384, certificate verified`. */
export const tlsEvent = ({ protocol, cipher, trust, reused }: TlsConnection): string =>
  `${protocol} with ${cipher}, certificate ${trust.toLowerCase()}${reused ? ', session resumed' : ''}`
