/** TXT records that ask for reports about TLS (RFC 8460 §3). Pure. */
import type { Lookup } from '../../system/net.ts'

export const tlsrptName = (domain: string): string => `_smtp._tls.${domain}`

/** Addresses for reports, `mailto:` and `https:`; none without a record, and the reason of a record that cannot be used. */
export type TlsrptRecord =
  | { readonly kind: 'found'; readonly rua: readonly string[] }
  | { readonly kind: 'none' }
  | { readonly kind: 'invalid' | 'failed'; readonly why: string }

const VERSION = /^v=TLSRPTv1[ \t]*;/
/** A `mailto:` URI may have header fields (RFC 6068 §2). */
const ADDRESS = /^(?:mailto:[^@\s,?]+@[^@\s,?]+(?:\?[^\s,!]*)?|https:\/\/[^\s,!]+)$/i
/** Further addresses are not used. */
const MOST_ADDRESSES = 5

/** The record among the TXT records at `tlsrptName`. Without exactly one record of this version there is none (RFC 8460 §3). */
export function tlsrptRecord(answer: Lookup<string>): TlsrptRecord {
  if (answer.kind === 'failed') return { kind: 'failed', why: answer.reason }
  const records = answer.kind === 'found' ? answer.records.filter((text) => VERSION.test(text)) : []
  const [record, ...others] = records
  if (record === undefined) return { kind: 'none' }
  if (others.length > 0) return { kind: 'invalid', why: `there are ${records.length} records, which count as none` }
  const field = record.split(';').flatMap((part) => /^\s*rua\s*=\s*(.*?)\s*$/s.exec(part)?.[1] ?? [])
  const addresses = (field[0] ?? '').split(',').map((address) => address.trim())
  const rua = [...new Set(addresses.filter((address) => ADDRESS.test(address)))].slice(0, MOST_ADDRESSES)
  return rua.length > 0 ? { kind: 'found', rua } : { kind: 'invalid', why: 'it has no address that starts with mailto: or https: (rua=)' }
}
