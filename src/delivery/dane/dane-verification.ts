/**
 * Verifies the certificate of a host by TLSA records (RFC 7672 §3). A record of usage 3 has to match the certificate of the host, whose names and
 * dates do not count. A record of usage 2 has to match one of its issuers: OpenSSL then verifies path, dates and name in a second handshake with
 * that issuer as the only trust anchor.
 */
import { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import type { TlsaRecord } from '../../system/net.ts'
import { anchorsAmong, matchesHost } from './tlsa.ts'

export type DaneVerification =
  | { readonly kind: 'fits' }
  /** The issuer (PEM) with which the certificate has to be verified. */
  | { readonly kind: 'anchor'; readonly pem: string }
  | { readonly kind: 'refused'; readonly why: string }

const LONGEST_CHAIN = 10

function issuersOf(leaf: X509Certificate): readonly X509Certificate[] {
  const issuers: X509Certificate[] = []
  for (let at = leaf.issuerCertificate; at !== undefined && issuers.length < LONGEST_CHAIN; at = at.issuerCertificate) {
    issuers.push(at)
    if (at.issuerCertificate?.fingerprint256 === at.fingerprint256) break
  }
  return issuers.filter(({ fingerprint256 }) => fingerprint256 !== leaf.fingerprint256)
}

export function verifyByTlsa(records: readonly TlsaRecord[], socket: TLSSocket): DaneVerification {
  const leaf = socket.getPeerX509Certificate()
  // A resumed session has no certificate. It was verified by the same records when it began.
  if (leaf === undefined) return socket.isSessionReused() ? { kind: 'fits' } : { kind: 'refused', why: 'the host sent no certificate' }
  if (matchesHost(records, leaf)) return { kind: 'fits' }
  const [anchor] = anchorsAmong(records, issuersOf(leaf))
  if (anchor !== undefined) return { kind: 'anchor', pem: anchor.toString() }
  const carried = records.find(({ usage, selector, matchingType }) => usage === 2 && selector === 0 && matchingType === 0)
  const pem = carried === undefined ? undefined : pemOf(carried.data)
  return pem === undefined ? { kind: 'refused', why: 'no TLSA record matches its certificates' } : { kind: 'anchor', pem }
}

/** The certificate that a record carries; undefined when it is none. */
function pemOf(der: Uint8Array): string | undefined {
  try {
    return new X509Certificate(der).toString()
  } catch {
    return undefined
  }
}
