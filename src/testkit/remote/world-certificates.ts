/**
 * Certificates of the servers in worlds, and the TLSA records that fit them. All worlds have the same authority, whose key everyone can
 * derive: trust it in worlds only.
 */
import { createHash } from 'node:crypto'
import type { WallTime } from '../../system/clock.ts'
import type { TlsaRecord } from '../../system/net.ts'
import { makeCertificate, type MadeCertificate } from './certificate-maker.ts'
import type { HostIdentity } from './policy-host.ts'

const ISSUER = makeCertificate({ seed: 'certification authority of test worlds', isAuthority: true })

/** Certificate (PEM) of the authority that signs the certificates of a world. The relay of a world trusts it by default. */
export const WORLD_CA: string = ISSUER.cert

export const CERTIFICATES = ['valid', 'expired', 'self-signed', 'other-name'] as const
/** Certificate of a host: one of WORLD_CA for its name, or one with the flaw. All four have the same key. */
export type HostCertificate = (typeof CERTIFICATES)[number]

/** End of an expired certificate, 2021-01-01. OpenSSL compares with the clock of the machine, not with that of the world. */
const EXPIRED: WallTime = 1_609_459_200_000

function certificateOf(host: string, kind: HostCertificate): MadeCertificate {
  const terms = { seed: `host ${host}`, subject: host, names: [host], issuer: ISSUER }
  switch (kind) {
    case 'valid':
      return makeCertificate(terms)
    case 'expired':
      return makeCertificate({ ...terms, until: EXPIRED })
    case 'self-signed':
      return makeCertificate({ seed: terms.seed, subject: host, names: [host] })
    case 'other-name':
      return makeCertificate({ ...terms, subject: `other.${host}`, names: [`other.${host}`] })
  }
}

export const worldIdentity = (host: string): HostIdentity => certificateOf(host, 'valid')

/** Certificate of a relay whose port is on this machine. */
export const relayIdentity = (host: string): HostIdentity =>
  makeCertificate({ seed: `relay ${host}`, subject: host, names: [host, 'localhost', '127.0.0.1', '::1'], issuer: ISSUER })

/** Certificate of a mail server, with that of its issuer, as DANE-TA(2) needs it (RFC 7671 §5.2). */
export function mailIdentity(host: string, kind: HostCertificate): HostIdentity {
  const { cert, key } = certificateOf(host, kind)
  return { cert: kind === 'self-signed' ? cert : `${cert}${WORLD_CA}`, key }
}

/** Reads `3 1 1 HEX` for a host. Without octets, the record fits the host's valid certificate. Undefined for any other text. */
export function tlsaRecord(text: string, host: string): TlsaRecord | undefined {
  const [, usage, selector, matchingType, hex] = /^([0-3]) ([01]) ([0-2])(?: ((?:[0-9a-f]{2})+))?$/i.exec(text) ?? []
  if (usage === undefined) return undefined
  const numbers = { usage: Number(usage), selector: Number(selector), matchingType: Number(matchingType) }
  return { ...numbers, data: hex === undefined ? fitting(numbers, host) : Buffer.from(hex, 'hex') }
}

/** Octets of a record that fits: of the issuer for the usages 0 and 2, else of the host (RFC 6698 §2.1.1). */
function fitting({ usage, selector, matchingType }: Omit<TlsaRecord, 'data'>, host: string): Uint8Array {
  const { der, spki } = usage % 2 === 0 ? ISSUER : certificateOf(host, 'valid')
  const data = selector === 0 ? der : spki
  return matchingType === 0
    ? data
    : createHash(matchingType === 1 ? 'sha256' : 'sha512')
        .update(data)
        .digest()
}
