/** Deliverability: the domains of senders with their last checks, the mail of a day by provider, and other checks. It looks nothing up. */
import type { DeliverabilityJson, ProviderFlowJson, SenderDomainJson } from '../../../resources/domains/deliverability-json.ts'
import type { DomainCheckSummaryJson } from '../../../resources/domains/domain-check-json.ts'
import { html, joined, type Html, type Part } from '../../../presentation/html.ts'
import { asRequest } from '../../markup/command-lines.ts'
import { answer, buttonLink, heading, section, type Screen } from '../../markup/frame.ts'
import { table, type Column } from '../../markup/html-table.ts'
import { linkTo, providerLink } from '../../markup/links.ts'
import { addressPart, breakable } from '../../markup/long-words.ts'
import { marked } from '../../markup/marks.ts'
import { longText } from '../../markup/reply.ts'
import { count, distance } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'
import { checkState, domainsSentence, type CheckState } from './deliverability-sentence.ts'

/** The mark of a state, and its word. */
const STATES: Readonly<Record<CheckState, readonly [mark: string, word: string]>> = {
  ok: ['done', 'in order'],
  wrong: ['failed', 'wrong'],
  unknown: ['waiting', 'unknown'],
  running: ['running', 'being checked'],
  failed: ['warning', 'check failed'],
  'not checked': ['removed', 'not checked'],
}

export const stateMark = (state: CheckState): Html => marked(...STATES[state])

export const checkLink = (view: Pick<View, 'root'>, domain: string, from: string): string =>
  linkTo(view, `deliverability/${encodeURIComponent(domain)}`, { from: from === domain ? null : from })

/** The question before a check; without a domain, it asks for one. */
export const newCheckLink = (view: Pick<View, 'root'>, domain?: string, from?: string): string =>
  linkTo(view, 'domain-check', { domain, from })

const problemsPart = (check: DomainCheckSummaryJson | null): Part => {
  if (check === null) return null
  if (check.state === 'failed' && check.failure !== null) return longText(check.failure)
  return check.problems.map(({ what, text }) => html`<p>${longText(`${what}: ${text}`)}</p>`)
}

/** State and age of a check. */
const checkPart = (view: View, check: DomainCheckSummaryJson | null): Html => {
  const age = check?.report_time ?? null
  return html`${stateMark(checkState(check))}${age === null ? null : html` <span class="faint">${distance(view, age)}</span>`}`
}

/** `98.5 %` */
const shareText = (share: number): string => `${(share * 100).toFixed(1)} %`

interface Flow {
  readonly delivered: number
  readonly deferred: number
  readonly bounced: number
  readonly expired: number
  readonly delivered_share: number | null
}

const flowColumns = <Row extends Flow>(): readonly Column<Row>[] => [
  {
    heading: 'Delivered',
    kind: 'number',
    cell: ({ delivered, delivered_share: share }) =>
      html`${count(delivered)}${share === null ? null : html` <span class="faint">(${shareText(share)})</span>`}`,
  },
  { heading: 'Deferrals', kind: 'number', cell: ({ deferred }) => count(deferred) },
  { heading: 'Returned', kind: 'number', cell: ({ bounced, expired }) => count(bounced + expired) },
]

const keysPart = ({ keys, sender_domain: name }: SenderDomainJson): Part =>
  keys.length === 0
    ? html`<span class="faint">no keys</span>`
    : joined(
        keys.map(
          ({ selector, domain, signs }) =>
            html`${selector}${domain === name ? null : html` <span class="faint">of ${domain}</span>`}${signs ? null : html` <span class="faint">does not sign yet</span>`}`,
        ),
      )

const checkButton = (view: View, domain: string, from: string): Part =>
  view.requester.mayOperate ? buttonLink(newCheckLink(view, domain, from), 'Check now…', 'small') : null

const domainColumns = (view: View): readonly Column<SenderDomainJson>[] => [
  {
    heading: 'Domain of senders',
    isTitle: true,
    cell: ({ sender_domain: name }) => html`<a href="${checkLink(view, name, name)}">${breakable(name)}</a>`,
  },
  { heading: 'Check', cell: ({ check }) => checkPart(view, check) },
  { heading: 'DKIM keys', cell: keysPart },
  ...flowColumns<SenderDomainJson>(),
  { heading: 'Action', label: '', kind: 'actions', cell: ({ sender_domain: name }) => checkButton(view, name, name) },
  { heading: 'Wrong or unknown', kind: 'reply', cell: ({ check }) => problemsPart(check) },
]

const otherColumns = (view: View): readonly Column<DomainCheckSummaryJson>[] => [
  {
    heading: 'Domain',
    isTitle: true,
    cell: ({ domain, sender_domain: from }) => html`<a href="${checkLink(view, domain, from)}">${breakable(domain)}</a>`,
  },
  { heading: 'For mail of', cell: ({ sender_domain: from }) => addressPart(from) },
  { heading: 'Check', cell: (check) => checkPart(view, check) },
  { heading: 'Action', label: '', kind: 'actions', cell: ({ domain, sender_domain: from }) => checkButton(view, domain, from) },
  { heading: 'Wrong or unknown', kind: 'reply', cell: problemsPart },
]

const providerColumns = (view: View): readonly Column<ProviderFlowJson>[] => [
  { heading: 'Provider', isTitle: true, cell: ({ provider }) => html`<a href="${providerLink(view, provider)}">${provider}</a>` },
  ...flowColumns<ProviderFlowJson>(),
]

export const deliverabilityScreen = (view: View, one: DeliverabilityJson): Screen => ({
  title: 'Deliverability',
  place: 'deliverability',
  main: html`${heading(
    'Deliverability',
    'Whether receivers can tell that mail is from us. Nothing is looked up until you order a check; figures are of the last 24 hours.',
    view.requester.mayOperate ? buttonLink(newCheckLink(view), 'Check another domain…') : null,
  )}
  ${answer(domainsSentence(one.sender_domains))}
  ${section(
    'Domains of senders',
    table({
      caption: 'Domains of senders',
      columns: domainColumns(view),
      rows: one.sender_domains,
      kind: 'action-below',
      empty: 'No domain sends mail.',
    }),
  )}
  ${section(
    'Delivery by provider',
    table({
      caption: 'Delivery by provider',
      columns: providerColumns(view),
      rows: one.providers,
      empty: 'The configuration has no table [provider.NAME].',
    }),
    {
      aside: html`<a href="${linkTo(view, 'causes')}">Causes</a> ·
        <a href="${linkTo(view, 'trends', { split_by: 'provider' })}">Trends by provider</a>`,
    },
  )}
  ${
    one.checks.length === 0
      ? null
      : section('Other checks', table({ caption: 'Other checks', columns: otherColumns(view), rows: one.checks, empty: null }))
  }
  ${asRequest({ method: 'GET', path: 'api/v1/deliverability' })}`,
})
