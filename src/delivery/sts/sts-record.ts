/** The TXT record and the policy of MTA-STS (RFC 8461 §3): parsing, and the match of mail exchangers. Pure. */
import { domainToASCII } from 'node:url'
import { SECOND, type Duration } from '../../system/clock.ts'
import type { Lookup } from '../../system/net.ts'
import type { StsPolicy } from '../../store/records/sts-policy.ts'

/** Id that a domain publishes, or why there is none. A record that is `invalid` counts as none. */
export type StsAnnouncement =
  | { readonly kind: 'id'; readonly id: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'invalid' | 'failed'; readonly reason: string }

export const recordName = (domain: string): string => `_mta-sts.${domain}`

export const policyHost = (domain: string): string => `mta-sts.${domain}`

/** The announcement in the TXT records at `recordName`. Without exactly one record of this version there is none (RFC 8461 §3.1). */
export function announcementIn(answer: Lookup<string>): StsAnnouncement {
  if (answer.kind === 'failed') return { kind: 'failed', reason: answer.reason }
  const records = answer.kind === 'found' ? answer.records.filter((text) => /^v=STSv1[ \t]*;/.test(text)) : []
  const [record, ...others] = records
  if (record === undefined) return { kind: 'none' }
  if (others.length > 0) return { kind: 'invalid', reason: `there are ${records.length} records, which count as none` }
  const id = idIn(record)
  return id === undefined ? { kind: 'invalid', reason: 'it has no id of 1 to 32 letters and digits' } : { kind: 'id', id }
}

function idIn(record: string): string | undefined {
  for (const field of record.split(';').slice(1)) {
    const match = /^\s*id\s*=\s*(.*?)\s*$/s.exec(field)
    if (match !== null) return /^[A-Za-z0-9]{1,32}$/.test(match[1] ?? '') ? match[1] : undefined
  }
  return undefined
}

/** A policy as it was fetched. */
export interface PublishedPolicy {
  readonly mode: StsPolicy['mode']
  readonly mx: readonly string[]
  readonly maxAge: Duration
}

/** In seconds: a year. */
const LONGEST_MAX_AGE = 31_557_600

/** Error for a policy that is not valid; its text says why. */
export class InvalidPolicy extends Error {
  override readonly name = 'InvalidPolicy'
}

/**
 * Parses a policy (RFC 8461 §3.2). Of repeated keys other than `mx`, the first counts; unknown keys are skipped. Throws InvalidPolicy,
 * also for a pattern that is not a name: a policy that was only partly understood could refuse the domain's own hosts.
 */
export function parsePolicy(text: string): PublishedPolicy {
  const { first, mx } = fieldsOf(text)
  if (first.get('version') !== 'STSv1') throw new InvalidPolicy('version is not STSv1')
  const mode = first.get('mode')
  if (mode !== 'enforce' && mode !== 'testing' && mode !== 'none') throw new InvalidPolicy('mode is none of enforce, testing, none')
  const age = first.get('max_age') ?? ''
  if (!/^\d{1,10}$/.test(age) || Number(age) > LONGEST_MAX_AGE)
    throw new InvalidPolicy(`max_age is not a number of seconds up to ${LONGEST_MAX_AGE}`)
  if (mode !== 'none' && mx.length === 0) throw new InvalidPolicy('mx is missing')
  return { mode, mx: mx.map(patternOf), maxAge: Number(age) * SECOND }
}

function fieldsOf(text: string): { readonly first: ReadonlyMap<string, string>; readonly mx: readonly string[] } {
  const first = new Map<string, string>()
  const mx: string[] = []
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === '') continue
    const match = /^([A-Za-z0-9][A-Za-z0-9_.-]{0,31})[ \t]*:[ \t]*(.*?)[ \t]*$/.exec(line)
    if (match === null) throw new InvalidPolicy('a line is not "key: value"')
    const [, key = '', value = ''] = match
    if (key === 'mx') mx.push(value)
    else if (!first.has(key)) first.set(key, value)
  }
  return { first, mx }
}

/** Name of a host or domain in lower case as A-labels, without a dot at its end; undefined when it is none. */
export function asciiName(name: string): string | undefined {
  const ascii = domainToASCII(name.replace(/\.$/, '')).toLowerCase()
  return /^(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/.test(ascii) ? ascii : undefined
}

function patternOf(value: string): string {
  const wildcard = value.startsWith('*.') ? '*.' : ''
  const name = asciiName(value.slice(wildcard.length))
  if (name === undefined || !name.includes('.')) throw new InvalidPolicy('an mx is neither a host name nor "*." with a domain')
  return wildcard + name
}

/** True when a policy names the mail exchanger. `*.` stands for exactly one label (RFC 8461 §4.1). */
export function namesExchanger(patterns: readonly string[], host: string): boolean {
  const name = asciiName(host)
  if (name === undefined) return false
  return patterns.some((pattern) =>
    pattern.startsWith('*.') ? name.slice(name.indexOf('.') + 1) === pattern.slice(2) && name.includes('.') : name === pattern,
  )
}
