/** Reads the records of a question from a DNS answer, through its CNAME records. Pure. */
import type { Answer } from 'dns-packet'
import type { DnsFailure, DnsReply } from './dns/dns-client.ts'
import type { MxRecord, SecureLookup, SecureRecords, TlsaRecord } from './net.ts'

const CNAME_LIMIT = 16

const nameOf = (name: string): string => name.toLowerCase().replace(/\.$/, '')

/** The outcome of a question. Every code other than NOERROR and NXDOMAIN is a soft failure: SERVFAIL is the answer for bogus data. */
export function secureLookup<T extends keyof SecureRecords>(
  reply: DnsReply | DnsFailure,
  asked: string,
  type: T,
): SecureLookup<SecureRecords[T]> {
  if ('failure' in reply) return { kind: 'failed', soft: true, reason: reply.failure }
  const { rcode, authentic: secure, answers } = reply
  if (rcode !== 'NOERROR' && rcode !== 'NXDOMAIN') return { kind: 'failed', soft: true, reason: rcode }
  const name = type === 'CNAME' ? nameOf(asked) : endOfChain(nameOf(asked), answers)
  if (name === undefined) return { kind: 'failed', soft: true, reason: 'loop of CNAME records' }
  const records = answers.flatMap((answer) => (answer.type === type && nameOf(answer.name) === name ? [recordOf(answer)] : []))
  if (records.length === 0) return { kind: 'none', nxdomain: rcode === 'NXDOMAIN', secure }
  return { kind: 'found', records: records as unknown as readonly SecureRecords[T][], secure, name }
}

function endOfChain(asked: string, answers: readonly Answer[]): string | undefined {
  const targets = new Map(answers.flatMap((one) => (one.type === 'CNAME' ? [[nameOf(one.name), nameOf(one.data)] as const] : [])))
  let name = asked
  for (let n = 0; n < CNAME_LIMIT; n++) {
    const next = targets.get(name)
    if (next === undefined) return name
    name = next
  }
  return undefined
}

function recordOf(answer: Answer): string | MxRecord | TlsaRecord {
  if (answer.type === 'MX') {
    const { preference = 0, exchange } = answer.data
    return { preference, exchange: exchange === '.' ? '' : exchange }
  }
  if (answer.type === 'TLSA') {
    const { usage, selector, matchingType, certificate } = answer.data
    return { usage, selector, matchingType, data: certificate }
  }
  // The caller selects records of the five types.
  const text = 'data' in answer && typeof answer.data === 'string' ? answer.data : ''
  return answer.type === 'CNAME' ? nameOf(text) : text
}
