/** Names of certificates (RFC 6125, RFC 8461 §4.2): subject alternative names only; a wildcard is the whole leftmost label. Pure. */
import type { PeerCertificate } from 'node:tls'

type Named = Partial<Pick<PeerCertificate, 'subjectaltname'>>

/** DNS names of a certificate, in lower case. */
export const dnsNamesOf = (certificate: Named): readonly string[] =>
  (certificate.subjectaltname ?? '').split(/,\s*/).flatMap((name) => (name.startsWith('DNS:') ? name.slice(4).toLowerCase() : []))

export const namesHost = (certificate: Named, host: string): boolean =>
  dnsNamesOf(certificate).some(
    (name) => name === host || (name.startsWith('*.') && host.includes('.') && name.slice(1) === host.slice(host.indexOf('.'))),
  )

/** Returns an error when the certificate names none of the hosts. */
export function namesNone(certificate: Named, hosts: readonly string[]): Error | undefined {
  return hosts.some((host) => namesHost(certificate, host)) ? undefined : new Error(`the certificate does not name ${hosts.join(' or ')}`)
}
