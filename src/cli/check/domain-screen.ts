/** The screen of `deferd check domain`: a line for each finding, and what happens to mail now. */
import type { Verdict } from '../../domain-check/finding.ts'
import { instantOf, localTime, maskControls } from '../../presentation/text.ts'
import type { DomainReportJson } from '../../resources/domains/domain-check-json.ts'
import type { Clock } from '../../system/clock.ts'
import { painted, type Display, type Role } from '../render/style.ts'
import { hanging } from '../render/wrapping.ts'

const ROLES: Readonly<Record<Verdict, Role | null>> = { ok: 'good', note: null, wrong: 'bad', unknown: 'waiting' }
const VERDICT_WIDTH = 9
const WHAT_WIDTH = 11

export function domainScreen(
  { domain, time, findings, mail }: DomainReportJson,
  { clock, display }: { readonly clock: Pick<Clock, 'zone'>; readonly display: Display },
): string {
  const { width } = display
  const lines = findings.flatMap(({ what, verdict, text }) => {
    const indent = VERDICT_WIDTH + WHAT_WIDTH
    const [first = '', ...rest] = hanging(' '.repeat(indent), maskControls(text), { width, indent })
    return [`${painted(verdict.padEnd(VERDICT_WIDTH), ROLES[verdict], display)}${what.padEnd(WHAT_WIDTH)}${first.trimStart()}`, ...rest]
  })
  const [last = '', ...more] = hanging('', maskControls(mail.text), { width, indent: 2 })
  return [
    painted(`${maskControls(domain)}, ${localTime(instantOf(time), clock)}`, 'heading', display),
    '',
    ...lines,
    '',
    ...[last, ...more].map((line) => painted(line, ROLES[mail.verdict], display)),
    '',
  ].join('\n')
}
