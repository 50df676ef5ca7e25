/** TLS connection of a delivery, in the terms of Postfix's log (smtp_tls_loglevel = 1, tls_log_summary). */
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { WallTime } from '../../system/clock.ts'
import { LEVEL_RULES } from '../../mail/tls-levels.ts'
import { cipherOf } from '../../system/tls-cipher.ts'
import type { TlsTerms } from './tls-policy.ts'

export interface TlsConnection {
  /**
   * Certificate of the server: not from a trusted CA; from a trusted CA; from a trusted CA and with the required name (levels
   * `verify` and `secure`). Postfix's `Anonymous` does not occur, because Node offers no cipher without a certificate.
   */
  readonly trust: 'Untrusted' | 'Trusted' | 'Verified'
  /** True when the TLS session of an earlier connection was resumed. */
  readonly reused: boolean
  /** `TLSv1.2` or `TLSv1.3`. */
  readonly protocol: string
  /** OpenSSL's name of the cipher. */
  readonly cipher: string
  /** Length of the cipher's key. */
  readonly bits: number
  /** Reason why a certificate that is verified for a report only does not fit. */
  readonly problem?: string | undefined
  /** The certificate of the server, where it was asked for. */
  readonly certificate?: PeerCertificate | undefined
}

export interface PeerCertificate {
  /** Subject alternative names as OpenSSL prints them: `DNS:mx.example, DNS:*.example`. */
  readonly names: string
  readonly until: WallTime
}

/** True for a socket whose certificate was refused: Node sets `authorizationError` before it destroys the socket. */
export const isCertificateRefused = (socket: Socket): boolean =>
  socket instanceof TLSSocket && (socket.authorizationError as Error | string | null | undefined) != null

/** Describes a socket after its handshake. */
export function tlsConnection(socket: TLSSocket, terms: Pick<TlsTerms, 'level' | 'rehearsed' | 'trust'>, inspects = false): TlsConnection {
  const cipher = cipherOf(socket) ?? 'unknown'
  return {
    trust: trustOf(socket, terms),
    reused: socket.isSessionReused(),
    protocol: socket.getProtocol() ?? 'unknown',
    cipher,
    // OpenSSL's names have no length for ciphers of one length, which is 256 (CHACHA20).
    bits: cipher.includes('128') ? 128 : 256,
    ...(terms.rehearsed === true && !socket.authorized ? { problem: String(socket.authorizationError) } : {}),
    ...(inspects ? { certificate: certificateOf(socket) } : {}),
  }
}

function certificateOf(socket: TLSSocket): PeerCertificate | undefined {
  const certificate = socket.getPeerX509Certificate()
  return certificate && { names: certificate.subjectAltName ?? '', until: certificate.validToDate.getTime() }
}

function trustOf(
  socket: TLSSocket,
  { level, trust, rehearsed = false }: Pick<TlsTerms, 'level' | 'rehearsed' | 'trust'>,
): TlsConnection['trust'] {
  if (trust !== undefined) return trust
  // The handshake fails at these levels unless the certificate is trusted and has the name.
  if (LEVEL_RULES[level].isVerified || (rehearsed && socket.authorized)) return 'Verified'
  // At the other levels the name is not required. Node checks it after the chain.
  const isTrusted = socket.authorized || String(socket.authorizationError) === 'ERR_TLS_CERT_ALTNAME_INVALID'
  return isTrusted ? 'Trusted' : 'Untrusted'
}
