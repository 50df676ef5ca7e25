/** TLSA records for SMTP (RFC 7672 §3.1, RFC 7671): which are usable, and which certificates they match. Pure. */
import { createHash, type X509Certificate } from 'node:crypto'
import type { TlsaRecord } from '../../system/net.ts'

/** Digests of tls_dane_digests, the strongest first, with the octets of RFC 6698 §2.1.3. */
export type DaneDigest = 'sha512' | 'sha256'

const MATCHING_TYPES: Readonly<Record<DaneDigest, number>> = { sha256: 1, sha512: 2 }
const LENGTHS: Readonly<Record<DaneDigest, number>> = { sha256: 32, sha512: 64 }

/** Usages of RFC 7672 §3.1: the trust anchor of the domain, and the certificate of the host. */
const TRUST_ANCHOR = 2
const END_ENTITY = 3
const FULL = 0

function isWellFormed({ usage, selector, matchingType, data }: TlsaRecord, digests: readonly DaneDigest[]): boolean {
  if ((usage !== TRUST_ANCHOR && usage !== END_ENTITY) || selector > 1 || data.length === 0) return false
  return matchingType === FULL || digests.some((digest) => MATCHING_TYPES[digest] === matchingType && LENGTHS[digest] === data.length)
}

/**
 * The usable records: per usage and selector those of the strongest digest (RFC 7671 §9), so that a weaker one gains an attacker nothing.
 */
export function usableRecords(records: readonly TlsaRecord[], digests: readonly DaneDigest[]): readonly TlsaRecord[] {
  const known = records.filter((record) => isWellFormed(record, digests))
  return known.filter(({ usage, selector, matchingType }) => {
    if (matchingType === FULL) return true
    const alike = known.filter((other) => other.usage === usage && other.selector === selector)
    const strongest = digests.find((digest) => alike.some((other) => other.matchingType === MATCHING_TYPES[digest]))
    return strongest !== undefined && MATCHING_TYPES[strongest] === matchingType
  })
}

const spkiOf = (certificate: X509Certificate): Buffer => certificate.publicKey.export({ type: 'spki', format: 'der' })

/** True when a record matches a certificate, without regard to its usage. */
export function matches({ selector, matchingType, data }: TlsaRecord, certificate: X509Certificate): boolean {
  const selected = selector === 0 ? certificate.raw : spkiOf(certificate)
  const found =
    matchingType === FULL
      ? selected
      : createHash(matchingType === 1 ? 'sha256' : 'sha512')
          .update(selected)
          .digest()
  return found.equals(data)
}

/** True when a record of usage 3 matches the certificate of the host, whatever its names and dates (RFC 7672 §3.1.1). */
export const matchesHost = (records: readonly TlsaRecord[], certificate: X509Certificate): boolean =>
  records.some((record) => record.usage === END_ENTITY && matches(record, certificate))

/** The certificates above the host's that a record of usage 2 matches (RFC 7672 §3.1.2). */
export const anchorsAmong = (records: readonly TlsaRecord[], issuers: readonly X509Certificate[]): readonly X509Certificate[] =>
  issuers.filter((issuer) => records.some((record) => record.usage === TRUST_ANCHOR && matches(record, issuer)))

/** A record as text, `3 1 1 0b9f…`, in the form of zone files. */
export const tlsaText = ({ usage, selector, matchingType, data }: TlsaRecord): string =>
  `${usage} ${selector} ${matchingType} ${Buffer.from(data).toString('hex')}`
