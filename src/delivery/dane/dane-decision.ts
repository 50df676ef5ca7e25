/** Decides how DANE applies to one mail exchanger (RFC 7672 §2.2, Postfix smtp_tls_policy.c dane_init). Pure. */
import { LEVEL_RULES, type DaneLevel } from '../../mail/tls-levels.ts'
import type { SecureLookup, TlsaRecord } from '../../system/net.ts'
import type { HostDns } from '../routing/host-order.ts'
import { usableRecords, type DaneDigest } from './tlsa.ts'

/** Names at which TLSA records are asked for, in this order. `alias` asks first whether the host's own CNAME record is authentic. */
type TlsaQuestion = { readonly kind: 'none' } | { readonly kind: 'names'; readonly names: readonly string[] } | { readonly kind: 'alias' }

/**
 * No TLSA records are asked for where the addresses of the host are not authentic: its name servers may fail such questions, and the
 * answers could not be authentic.
 */
export function tlsaQuestion(host: string, { secure, canonical }: HostDns): TlsaQuestion {
  if (secure) return { kind: 'names', names: canonical === host ? [host] : [canonical, host] }
  return canonical === host ? { kind: 'none' } : { kind: 'alias' }
}

/** The answer for a host: records with the name that they are at, none, or a failed look-up. */
export type TlsaAnswer =
  | { readonly kind: 'found'; readonly base: string; readonly records: readonly TlsaRecord[] }
  | { readonly kind: 'none' }
  | { readonly kind: 'failed' }

/** Answer of one look-up. Records that are not authentic count as none; a failure is never taken as their absence. */
export function tlsaAnswer(base: string, answer: SecureLookup<TlsaRecord>): TlsaAnswer {
  switch (answer.kind) {
    case 'failed':
      return { kind: 'failed' }
    case 'none':
      return { kind: 'none' }
    case 'found':
      return answer.secure ? { kind: 'found', base, records: answer.records } : { kind: 'none' }
  }
}

export type DaneDecision =
  /** DANE does not apply: the level is `may`, and an MTA-STS policy may raise it. */
  | { readonly kind: 'inapplicable' }
  /** No mail is sent to the host. */
  | { readonly kind: 'refused'; readonly reason: string; readonly fault: 'lookup' | 'required' | 'unusable' }
  /** TLS is required, with any certificate: no record is usable, or the MX records are not authentic. */
  | { readonly kind: 'encrypt'; readonly base: string; readonly records: readonly TlsaRecord[]; readonly usable: boolean }
  /** TLS is required, with a certificate that fits. `half`: the MX records are not authentic, so that the host is only trusted. */
  | { readonly kind: 'verify'; readonly base: string; readonly records: readonly TlsaRecord[]; readonly half: boolean }

export interface DaneFacts {
  readonly level: DaneLevel
  readonly host: string
  readonly port: number
  readonly dns: Pick<HostDns, 'mxSecure'>
  /** smtp_tls_dane_insecure_mx_policy */
  readonly insecureMx: 'dane' | 'encrypt' | 'may'
  readonly digests: readonly DaneDigest[]
  readonly tlsa: TlsaAnswer
}

export function decideDane({ level, host, port, dns, insecureMx, digests, tlsa }: DaneFacts): DaneDecision {
  const isRequired = LEVEL_RULES[level].tlsa === 'required'
  const without = (reason: string): DaneDecision => (isRequired ? { kind: 'refused', reason, fault: 'required' } : { kind: 'inapplicable' })
  if (!dns.mxSecure && (isRequired || insecureMx === 'may')) return without('non DNSSEC destination')
  if (tlsa.kind === 'failed') return { kind: 'refused', reason: `TLSA lookup error for ${host}:${port}`, fault: 'lookup' }
  if (tlsa.kind === 'none') return without('no TLSA records found')
  const records = usableRecords(tlsa.records, digests)
  if (records.length === 0)
    return isRequired
      ? { kind: 'refused', reason: 'TLSA records unusable', fault: 'unusable' }
      : { kind: 'encrypt', base: tlsa.base, records: tlsa.records, usable: false }
  if (!dns.mxSecure && insecureMx === 'encrypt') return { kind: 'encrypt', base: tlsa.base, records, usable: true }
  return { kind: 'verify', base: tlsa.base, records, half: !dns.mxSecure }
}
