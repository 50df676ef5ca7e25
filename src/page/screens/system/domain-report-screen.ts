/** The last check of a domain for the mail of a domain of senders, and the question before a new one. */
import type { DomainCheckJson, DomainCheckSummaryJson, DomainReportJson } from '../../../resources/domains/domain-check-json.ts'
import { html, joined, type Html, type Part } from '../../../presentation/html.ts'
import { asCommand, type ApiCall } from '../../markup/command-lines.ts'
import { field, hidden, type FormProblem } from '../../markup/fields.ts'
import { answer, buttonLink, heading, section, type Screen } from '../../markup/frame.ts'
import { table, type Column } from '../../markup/html-table.ts'
import { linkTo } from '../../markup/links.ts'
import { marked, shapeOf } from '../../markup/marks.ts'
import { questionPanel } from '../../markup/question-panel.ts'
import { longText } from '../../markup/reply.ts'
import { distance } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'
import { checkLink, newCheckLink, stateMark } from './deliverability-screen.ts'
import { checkState, findingsSentence } from './deliverability-sentence.ts'

type Finding = DomainReportJson['findings'][number]

/** The mark of a verdict, and its word. */
const VERDICTS: Readonly<Record<Finding['verdict'], readonly [mark: string, word: string]>> = {
  ok: ['done', 'ok'],
  note: ['removed', 'note'],
  wrong: ['failed', 'wrong'],
  unknown: ['waiting', 'unknown'],
}

/** Subjects of findings by what they are about; those that are in no group are of the way of mail. */
const OF_US = ['source', 'HELO', 'SPF', 'DKIM', 'DMARC']
const OF_DOMAIN = ['MX', 'addresses', 'host', 'TLSA', 'MTA-STS', 'TLS-RPT']

const COLUMNS: readonly Column<Finding>[] = [
  { heading: 'Subject', isTitle: true, cell: ({ what }) => what },
  { heading: 'Verdict', cell: ({ verdict }) => marked(...VERDICTS[verdict]) },
  { heading: 'Evidence', kind: 'reply', cell: ({ text }) => longText(text) },
]

const findingSection = (title: string, rows: readonly Finding[]): Part =>
  rows.length === 0 ? null : section(title, table({ caption: title, columns: COLUMNS, rows, empty: null }))

export interface AskedCheck {
  readonly domain: string
  /** Domain of senders. */
  readonly from: string
  /** Null when no check is kept. */
  readonly check: DomainCheckJson | null
  /** Kept checks of the domain for the mail of other domains of senders. */
  readonly others: readonly DomainCheckSummaryJson[]
}

const callOf = (domain: string, from: string): ApiCall => ({ method: 'POST', path: 'api/v1/domain-checks', body: { domain, from } })
const wordsOf = (domain: string, from: string): readonly string[] => ['check', 'domain', domain, '--from', from]

function noticeOf(view: View, { state, failure, begin_time: begin }: DomainCheckJson): Html | null {
  if (state === 'running')
    return html`<p class="news" role="status" data-state="running">
      A check goes on since ${distance(view, begin)}; its report follows by itself, within two minutes.
    </p>`
  return failure === null
    ? null
    : html`<p class="problem" role="alert">${shapeOf('warning')} The last check gave no report: ${failure}.</p>`
}

function reportParts(view: View, { report, ordered_by: by, node }: DomainCheckJson): Part {
  if (report === null) return null
  const { findings, mail, time } = report
  const of = (names: readonly string[]) => findings.filter(({ what }) => names.includes(what))
  return html`${answer(
    html`${findingsSentence(findings)} ${mail.text.charAt(0).toUpperCase()}${mail.text.slice(1)}.`,
    html`As of ${distance(view, time)}, looked up by ${node}; the last check was ordered by ${by}.`,
  )}
  ${findingSection('What receivers see of us', of(OF_US))} ${findingSection('What the domain publishes', of(OF_DOMAIN))}
  ${findingSection(
    'The way of mail',
    findings.filter(({ what }) => !OF_US.includes(what) && !OF_DOMAIN.includes(what)),
  )}`
}

/** The answer without a check for these senders. It names checks for others, which say as much about the servers of the domain. */
function notChecked(view: View, { from, others }: AskedCheck): Html {
  const links = others.map(
    ({ domain, sender_domain: other, begin_time: begin }) =>
      html`Checked ${distance(view, begin)} for <a href="${checkLink(view, domain, other)}">mail of ${other}</a>.`,
  )
  return answer(
    `Not checked for mail of ${from} in the last 7 days. Only a check looks anything up.`,
    links.length === 0 ? null : html`${joined(links, ' ')}`,
  )
}

export function domainReportScreen(view: View, asked: AskedCheck): Screen {
  const { domain, from, check } = asked
  const isRunning = check?.state === 'running'
  const state = checkState(check === null ? null : { state: check.state, verdict: check.report?.verdict ?? null })
  const path = `api/v1/domain-checks/${encodeURIComponent(domain)}?${new URLSearchParams({ from }).toString()}`
  return {
    title: domain,
    place: 'deliverability',
    ...(isRunning ? { live: { path }, refresh: 2 } : {}),
    main: html`${heading(
        html`<span class="name">${domain}</span> ${stateMark(state)}`,
        domain === from ? 'The domain as receivers of its mail see it, and as senders to it do' : `For mail of ${from}`,
        view.requester.mayOperate && !isRunning ? buttonLink(newCheckLink(view, domain, from), 'Check now…', 'primary') : null,
      )}
      ${check === null ? notChecked(view, asked) : html`${noticeOf(view, check)} ${reportParts(view, check)}`}
      <p class="faint"><a href="${linkTo(view, 'deliverability')}">All domains</a></p>
      ${asCommand(wordsOf(domain, from), callOf(domain, from))}`,
  }
}

const ABOUT =
  'Looks up its records, fetches its MTA-STS policy, and opens a session with each of its mail hosts that ends before MAIL: no mail is sent. It takes two minutes at most.'

/** Domains of a check; for the form, as they were sent. */
export interface CheckText {
  readonly domain: string
  /** Address or domain of senders. */
  readonly from: string
}

/** The question before a check. */
export const checkQuestion = (view: View, { domain, from }: CheckText): Screen =>
  questionPanel({
    place: 'deliverability',
    question: `Check ${domain}?`,
    about: domain === from ? ABOUT : `${ABOUT} SPF, DKIM and DMARC are those of ${from}.`,
    action: linkTo(view, 'domain-check'),
    button: `Check ${domain}`,
    facts: hidden({ domain, from }),
    back: checkLink(view, domain, from),
    words: wordsOf(domain, from),
    call: callOf(domain, from),
  })

/** The form for a check. `problem` is the mistake in the form that was sent; null for none. */
export const checkForm = (view: View, { domain, from }: CheckText, problem: FormProblem | null): Screen =>
  questionPanel({
    place: 'deliverability',
    question: 'Check a domain?',
    about: ABOUT,
    action: linkTo(view, 'domain-check'),
    button: 'Check the domain',
    fields: [
      field({ name: 'domain', label: 'Recipient domain', value: domain, example: 'example.com', isRequired: true }),
      field({ name: 'from', label: 'Domain of senders', value: from, isRequired: true }),
    ],
    problem,
    back: linkTo(view, 'deliverability'),
    words: wordsOf('DOMAIN', from),
    call: callOf('DOMAIN', from),
  })
