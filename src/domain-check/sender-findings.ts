/** Findings about this relay and the sender as receivers see them: names of our addresses, SPF, DKIM, DMARC. Pure. */
import type { DomainFacts } from './domain-facts.ts'
import { note, ok, unknown, wrong, type Finding } from './finding.ts'
import { wayOut } from './mail-now.ts'
import type { SenderFacts } from './sender-facts.ts'
import type { OurFacts, SourceFacts } from './source-facts.ts'

export function senderFindings(facts: DomainFacts): readonly Finding[] {
  const { us, sender } = facts
  const isDirect = wayOut(facts) === undefined
  const ours = isDirect ? ourFindings(us) : [note('source', 'receivers see the addresses of the next hop, not ours')]
  return [...ours, ...(isDirect ? spfFindings(sender) : []), ...dkimFindings(sender), dmarcFinding(sender, isDirect)]
}

function ourFindings({ helo, heloAddresses, sources, hidden }: OurFacts): readonly Finding[] {
  const unseen = hidden.map((address) => note('source', `${address} is private, and proxy_interfaces has no public address for it`))
  const none =
    sources.length + hidden.length === 0 ? [note('source', 'not known: no connection was made, and smtp_bind_address is empty')] : []
  return [...sources.map(sourceFinding), ...unseen, ...none, ...(sources.length === 0 ? [] : [heloFinding(helo, heloAddresses, sources)])]
}

function sourceFinding({ address, names, confirmed, unknown: unsure }: SourceFacts): Finding {
  switch (names.kind) {
    case 'failed':
      return unknown('source', `${address}: the look-up of its name (PTR) failed for now: ${names.reason}`)
    case 'none':
      return wrong('source', `${address} has no name (PTR), for which many receivers refuse mail`)
    case 'found': {
      if (confirmed.length > 0) return ok('source', `${address} is ${confirmed.join(', ')}`)
      if (unsure.length > 0) return unknown('source', `${address}: the look-up of ${unsure.join(', ')} failed for now`)
      return wrong('source', `${address} has the name ${names.records.join(', ')} (PTR), which does not have this address`)
    }
  }
}

function heloFinding(helo: string, addresses: OurFacts['heloAddresses'], sources: readonly SourceFacts[]): Finding {
  switch (addresses.kind) {
    case 'failed':
      return unknown('HELO', `the look-up of ${helo} failed for now: ${addresses.reason}`)
    case 'none':
      return wrong('HELO', `${helo} (smtp_helo_name) has no address`)
    case 'found': {
      const other = sources.filter(({ address }) => !addresses.records.includes(address)).map(({ address }) => address)
      return other.length === 0 ? ok('HELO', helo) : note('HELO', `${helo} (smtp_helo_name) does not have the address ${other.join(', ')}`)
    }
  }
}

const SPF_VERDICTS = {
  pass: ok,
  fail: wrong,
  softfail: wrong,
  permerror: wrong,
  temperror: unknown,
  neutral: note,
  none: note,
  'not-evaluated': note,
} as const

function spfFindings({ domain, spf }: SenderFacts): readonly Finding[] {
  return spf.map(({ address, result, why }) => {
    const text = result === 'not-evaluated' ? 'not evaluated' : result === 'none' ? 'no record' : result
    return SPF_VERDICTS[result]('SPF', `${domain} from ${address}: ${text}${why === null ? '' : ` (${why})`}`)
  })
}

function dkimFindings({ domain, dkim }: SenderFacts): readonly Finding[] {
  if (dkim.length === 0) return [note('DKIM', `mail from ${domain} is not signed: there is no [dkim] table for it`)]
  return dkim.map(({ verdict, text, signs }) => {
    const use = signs ? '' : '; does not sign yet'
    // A key that does not sign yet harms no mail.
    if (!signs && verdict === 'wrong') return note('DKIM', `${text}${use}`)
    return (verdict === 'ok' ? ok : verdict === 'wrong' ? wrong : unknown)('DKIM', `${text}${use}`)
  })
}

type Pass = 'yes' | 'no' | 'unknown'

function anyPass(results: readonly Pass[]): Pass {
  return results.includes('yes') ? 'yes' : results.includes('unknown') ? 'unknown' : 'no'
}

/** Finding about DMARC: mail passes by SPF, when its domain is the domain of From, or by a signature of that domain or of a parent. */
function dmarcFinding({ domain, spf, dkim, dmarc }: SenderFacts, isDirect: boolean): Finding {
  if (dmarc.kind === 'failed') return unknown('DMARC', dmarc.why)
  if (dmarc.kind === 'invalid') return wrong('DMARC', dmarc.why)
  if (dmarc.kind === 'none') return note('DMARC', `${domain} has no record`)
  const { policy, domain: at, strictDkim, mistake } = dmarc.policy
  const name = `p=${policy}${at === domain ? '' : ` of ${at}`}${mistake === undefined ? '' : ` (${mistake})`}`
  // Mail may be sent from each of our addresses.
  const ofSpf = isDirect && spf.length > 0 ? (spf.every(({ result }) => result === 'pass') ? 'yes' : spfPass(spf)) : 'unknown'
  const aligned = dkim.filter((key) => key.signs && (!strictDkim || key.domain === domain))
  const ofDkim = anyPass(aligned.map(({ verdict }): Pass => (verdict === 'ok' ? 'yes' : verdict === 'unknown' ? 'unknown' : 'no')))
  const by = [...(ofSpf === 'yes' ? ['SPF'] : []), ...(ofDkim === 'yes' ? ['DKIM'] : [])].join(' and ')
  switch (anyPass([ofSpf, ofDkim])) {
    case 'yes':
      return ok('DMARC', `${name}; passed by ${by}`)
    case 'unknown':
      return note('DMARC', `${name}; whether mail passes is not known`)
    case 'no':
      return (policy === 'none' ? note : wrong)('DMARC', `${name}; mail passes by neither SPF nor DKIM`)
  }
}

/** Result of SPF when at least one address does not pass. */
const spfPass = (spf: SenderFacts['spf']): Pass =>
  spf.some(({ result }) => result === 'temperror' || result === 'not-evaluated') ? 'unknown' : 'no'
