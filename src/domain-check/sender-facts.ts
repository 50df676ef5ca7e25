/** Gathers the records by which receivers authenticate a sender's mail: SPF of the sender's domain for our addresses, DKIM keys, DMARC. */
import { recordName, recordProblem } from '../dkim/key-record.ts'
import type { DkimKeys } from '../dkim/keys.ts'
import { keysFor } from '../dkim/signer.ts'
import type { Net } from '../system/net.ts'
import { dmarcDomains, dmarcName, dmarcRecord, type DmarcPolicy, type DmarcRecord } from './dmarc-record.ts'
import { evaluateSpf, type SpfOutcome } from './spf-evaluation.ts'

/** A key that signs mail of the domain, and the state of the key's record. */
interface DkimFacts {
  /** `d=` */
  readonly domain: string
  readonly selector: string
  /** False for a staged key, which does not sign yet. */
  readonly signs: boolean
  /** `unknown` when the look-up failed temporarily. */
  readonly verdict: 'ok' | 'wrong' | 'unknown'
  readonly text: string
}

type DmarcFacts = DmarcRecord | { readonly kind: 'failed'; readonly why: string }

export interface SenderFacts {
  readonly domain: string
  /** Result of SPF for each of our addresses; empty when the addresses are unknown. */
  readonly spf: readonly (SpfOutcome & { readonly address: string })[]
  /** Empty when no table has keys for the domain. */
  readonly dkim: readonly DkimFacts[]
  readonly dmarc: DmarcFacts
}

interface SenderQuestion {
  readonly domain: string
  readonly addresses: readonly string[]
  readonly keys: DkimKeys
}

export async function gatherSender({ domain, addresses, keys }: SenderQuestion, net: Net): Promise<SenderFacts> {
  const [spf, dkim, dmarc] = await Promise.all([
    Promise.all(addresses.map(async (address) => ({ address, ...(await evaluateSpf(address, domain, net)) }))),
    dkimFacts(domain, keys, net),
    dmarcFacts(domain, net),
  ])
  return { domain, spf, dkim, dmarc }
}

async function dkimFacts(from: string, tables: DkimKeys, net: Pick<Net, 'lookupTxt'>): Promise<readonly DkimFacts[]> {
  const table = keysFor(tables, from)
  if (table === undefined) return []
  const { domain } = table
  return Promise.all(
    table.keys.map(async ({ selector, staged, record }): Promise<DkimFacts> => {
      const name = recordName(selector, domain)
      const key = { domain, selector, signs: !staged }
      const found = await net.lookupTxt(name)
      if (found.kind === 'failed') return { ...key, verdict: 'unknown', text: `the look-up of ${name} failed: ${found.reason}` }
      const problem = recordProblem(found.kind === 'found' ? found.records : [], record)
      return { ...key, verdict: problem === null ? 'ok' : 'wrong', text: `${name}: ${problem ?? 'published'}` }
    }),
  )
}

/**
 * The policy of the domain itself, of its organizational domain, or of the public suffix above it (RFC 9989 §4.10.1, §4.10.2). An invalid
 * record of the domain itself ends the search, because receivers treat it in different ways (RFC 7489 §6.6.3).
 */
async function dmarcFacts(from: string, net: Pick<Net, 'lookupTxt'>): Promise<DmarcFacts> {
  let highest: DmarcPolicy | undefined
  /** Policy of the subdomain looked up before. */
  let below: DmarcPolicy | undefined
  let unusable: DmarcFacts | undefined
  for (const domain of dmarcDomains(from)) {
    const found = await net.lookupTxt(dmarcName(domain))
    if (found.kind === 'failed') return { kind: 'failed', why: `the look-up of ${dmarcName(domain)} failed: ${found.reason}` }
    const record = dmarcRecord(from, domain, found.kind === 'found' ? found.records : [])
    if (record.kind === 'invalid') unusable = { kind: 'invalid', why: `${dmarcName(domain)}: ${record.why}` }
    if (record.kind === 'invalid' && domain === from) break
    const policy = record.kind === 'found' ? record.policy : undefined
    if (policy !== undefined && (domain === from || policy.psd === 'n')) return { kind: 'found', policy }
    if (policy?.psd === 'y') return { kind: 'found', policy: below ?? policy }
    highest = policy ?? highest
    below = policy
  }
  return highest === undefined ? (unusable ?? { kind: 'none' }) : { kind: 'found', policy: highest }
}
