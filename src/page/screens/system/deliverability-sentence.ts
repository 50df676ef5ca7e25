/** Sentences about checks of domains. Pure. */
import { asSentence } from '../../../presentation/text.ts'
import type { DomainCheckSummaryJson, DomainReportJson } from '../../../resources/domains/domain-check-json.ts'

type Finding = DomainReportJson['findings'][number]
type Verdict = Finding['verdict']

/** The worst first. */
const ORDER: readonly Verdict[] = ['wrong', 'unknown', 'note', 'ok']

/** `MX, SPF and DKIM` */
const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1) ?? ''}`

/** Subjects whose name is a plural. */
const PLURAL: ReadonlySet<string> = new Set(['limits', 'addresses'])

const isOne = ([first = '', ...others]: readonly string[]): boolean => others.length === 0 && !PLURAL.has(first)

const isAre = (names: readonly string[]): string => (isOne(names) ? 'is' : 'are')

const STATEMENTS: Readonly<Record<Verdict, (names: readonly string[]) => string>> = {
  wrong: (names) => `${listed(names)} ${isAre(names)} wrong`,
  unknown: (names) => `${listed(names)} could not be looked up`,
  note: (names) => `${listed(names)} ${isOne(names) ? 'has a note' : 'have notes'}`,
  ok: (names) => `${listed(names)} ${isAre(names)} in order`,
}

/** `DKIM is wrong; MX, SPF and DMARC are in order.` Each subject counts with its worst finding. */
export function findingsSentence(findings: readonly Finding[]): string {
  const worst = new Map<string, Verdict>()
  for (const { what, verdict } of findings) {
    const known = worst.get(what)
    if (known === undefined || ORDER.indexOf(verdict) < ORDER.indexOf(known)) worst.set(what, verdict)
  }
  const parts = ORDER.flatMap((verdict) => {
    const names = [...worst].filter(([, one]) => one === verdict).map(([what]) => what)
    return names.length === 0 ? [] : [STATEMENTS[verdict](names)]
  })
  return asSentence(`${parts.join('; ')}.`)
}

/** State of a check: of its report, of the order without one, or that there is none. */
export type CheckState = DomainReportJson['verdict'] | 'running' | 'failed' | 'not checked'

type KnownCheck = Pick<DomainCheckSummaryJson, 'state' | 'verdict'> | null

export function checkState(check: KnownCheck): CheckState {
  if (check === null) return 'not checked'
  if (check.state === 'running') return 'running'
  return check.verdict ?? 'failed'
}

/** `us.example has something wrong; a.example and b.example are not checked.` */
export function domainsSentence(domains: readonly { readonly sender_domain: string; readonly check: KnownCheck }[]): string {
  const names = (state: CheckState) => domains.filter(({ check }) => checkState(check) === state).map((one) => one.sender_domain)
  const [wrong, unknown, failed, unchecked] = [names('wrong'), names('unknown'), names('failed'), names('not checked')]
  const parts = [
    ...(wrong.length === 0 ? [] : [`${listed(wrong)} ${wrong.length === 1 ? 'has' : 'have'} something wrong`]),
    ...(unknown.length === 0 ? [] : [`${listed(unknown)} ${unknown.length === 1 ? 'has' : 'have'} a look-up that failed`]),
    ...(failed.length === 0 ? [] : [`${listed(failed)} could not be checked`]),
    ...(unchecked.length === 0 ? [] : [`${listed(unchecked)} ${isAre(unchecked)} not checked`]),
  ]
  const [first, ...others] = parts
  if (first === undefined) return 'Nothing is wrong with the domains of senders as of their last checks.'
  return `${[first, ...others].join('; ')}.`
}
