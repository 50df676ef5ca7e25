/** The suppression list, the form that adds an entry, and the questions before one is removed and before stopped listings go on. */
import type { z } from 'zod'
import { newSuppression, type suppressionConditions } from '../../../api/suppression-routes.ts'
import { html, type Html, type Part } from '../../../presentation/html.ts'
import type { SuppressionJson, SuppressionPageJson, SuppressionStopsJson } from '../../../resources/records/suppression-json.ts'
import { ALL_SENDERS, SUPPRESSION_REASONS } from '../../../store/records/suppression-entry.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { downloads } from '../../markup/downloads.ts'
import { choice, field, hidden, problemText, type FormField, type FormProblem } from '../../markup/fields.ts'
import { buttonLink, heading, pager, type Screen } from '../../markup/frame.ts'
import { facts, table, type Column } from '../../markup/html-table.ts'
import { linkTo, logLink, queryText } from '../../markup/links.ts'
import { addressPart, breakable, destinationPart } from '../../markup/long-words.ts'
import { shapeOf } from '../../markup/marks.ts'
import { questionPanel } from '../../markup/question-panel.ts'
import { replyPart } from '../../markup/reply.ts'
import { distance } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'

/** The conditions of the API as the fields of the form have them; empty for none. */
export type SuppressionFilterText = Readonly<Record<keyof z.output<typeof suppressionConditions>, string>>

interface ListFacts {
  readonly page: SuppressionPageJson
  readonly filter: SuppressionFilterText
  readonly isFirst: boolean
  readonly stops: SuppressionStopsJson['stops']
  /** Destinations at which no address is listed for now. */
  readonly braked: readonly string[]
  readonly setting: 'no' | 'warn' | 'yes'
  readonly problem: FormProblem | null
}

export const NO_ENTRIES: SuppressionPageJson = { entries: [], next: null }

const sendersOf = ({ scope }: Pick<SuppressionJson, 'scope'>): Part => (scope === ALL_SENDERS ? 'all' : addressPart(scope))

const listedPart = (view: View, { since_time: at, added_by: by }: SuppressionJson): Part =>
  at === null ? null : html`${distance(view, at)} <span class="faint">by ${breakable(by)}</span>`

const endOf = (view: View, { expire_time: at }: SuppressionJson): Part => (at === null ? 'never' : distance(view, at))

const removalLink = (view: View, { scope, address }: SuppressionJson): Html =>
  buttonLink(linkTo(view, 'suppressions/remove', { scope, address }), 'Remove…', 'small')

const columnsOf = (view: View): readonly Column<SuppressionJson>[] => [
  { heading: 'Address', isTitle: true, cell: ({ address }) => addressPart(address) },
  { heading: 'Senders', cell: sendersOf },
  { heading: 'Reason', cell: ({ reason }) => reason },
  { heading: 'Text', kind: 'reply', cell: ({ text }) => (text === null ? null : replyPart(text)) },
  { heading: 'Listed', cell: (one) => listedPart(view, one) },
  { heading: 'Ends', cell: (one) => endOf(view, one) },
  ...(view.requester.mayOperate
    ? [{ heading: 'Action', label: '', kind: 'actions', cell: (one: SuppressionJson) => removalLink(view, one) } as const]
    : []),
]

const REASONS = SUPPRESSION_REASONS.map((value) => ({ value, text: value }))

const filterFields = (filter: SuppressionFilterText): readonly FormField[] => [
  field({ name: 'address', label: 'Address', value: filter.address, example: 'ann@example.net' }),
  field({ name: 'scope', label: 'Sender domain (* for all)', value: filter.scope, example: 'news.example.com' }),
  choice('Reason', 'reason', filter.reason, [{ value: '', text: 'any' }, ...REASONS]),
  field({ name: 'destination', label: 'Destination', value: filter.destination, example: 'example.net' }),
  field({ name: 'since', label: 'Listed within', value: filter.since, example: '2h' }),
]

const filterForm = (view: View, fields: readonly FormField[]): Html =>
  html`<form class="filter" action="${linkTo(view, 'suppressions')}" method="get">
    ${fields}
    <button type="submit">Show</button>
  </form>`

const SETTINGS = {
  no: 'RCPT accepts these addresses, because suppression = no.',
  warn: 'RCPT accepts these addresses with a line in the log, because suppression = warn.',
  yes: 'RCPT refuses these addresses.',
} as const

const stopLines = (view: View, stops: ListFacts['stops']): readonly Html[] =>
  stops.map(
    ({ scope, time }) =>
      html`<p class="problem">
        ${shapeOf('warning')} No more addresses are listed for ${breakable(scope)}, because there were too many (${distance(view, time)}).
        ${view.requester.mayOperate ? buttonLink(linkTo(view, 'suppressions/resume', { scope }), 'Resume…', 'small') : null}
      </p>`,
  )

const brakeLines = (view: View, braked: ListFacts['braked']): readonly Html[] =>
  braked.map(
    (destination) =>
      html`<p class="problem">
        ${shapeOf('warning')} No address at ${destinationPart(view, destination)} is listed, because more than a fifth of its recipients
        were refused as unknown within an hour. What was listed there within the hour was removed. It goes on by itself when they are fewer.
        <a href="${logLink(view, { event: 'listing-braked', destination })}">Its line in the log</a>
      </p>`,
  )

export function suppressionsScreen(view: View, { page, filter, isFirst, stops, braked, setting, problem }: ListFacts): Screen {
  const given = Object.entries(filter).filter(([, value]) => value !== '')
  const fields = filterFields(filter)
  const empty = given.length === 0 ? 'No address is on the suppression list.' : 'No entry matches.'
  return {
    title: 'Suppression',
    place: 'suppressions',
    main: html`${heading(
      'Suppression',
      SETTINGS[setting],
      view.requester.mayOperate ? buttonLink(linkTo(view, 'new-suppression'), 'Add…') : null,
    )}
    ${problem === null ? null : html`<p class="problem" role="alert">${shapeOf('warning')} ${problemText(fields, problem)}</p>`}
    ${stopLines(view, stops)} ${brakeLines(view, braked)} ${filterForm(view, fields)}
    ${
      problem === null
        ? html`${table({ caption: 'Suppression list', columns: columnsOf(view), rows: page.entries, kind: 'action-below', empty })}
          ${pager(view, 'suppressions', filter, { next: page.next, isFirst })} ${downloads(view, 'suppressions', filter)}`
        : null
    }
    ${asCommand(['suppression', 'list', ...given.flatMap(([name, value]) => [`--${name}`, value])], {
      method: 'GET',
      path: `api/v1/suppressions${queryText(filter)}`,
    })}`,
  }
}

/** The fields of the form, as they were sent. */
export interface SuppressionText {
  readonly scope: string
  readonly address: string
  readonly reason: string
  readonly text: string
  readonly expires: string
}

export const NO_SUPPRESSION: SuppressionText = { scope: ALL_SENDERS, address: '', reason: 'manual', text: '', expires: '' }

const ADDED_REASONS = REASONS.filter(({ value }) => newSuppression.shape.reason.safeParse(value).success)

const entryFields = (given: SuppressionText): readonly FormField[] => [
  field({
    name: 'address',
    label: 'Address, or @domain for all of a domain',
    value: given.address,
    example: 'ann@example.net',
    isRequired: true,
  }),
  field({ name: 'scope', label: 'Sender domain, or * for all', value: given.scope, example: 'news.example.com', isRequired: true }),
  choice('Reason', 'reason', given.reason, ADDED_REASONS),
  field({ name: 'text', label: 'Text that the refusal quotes (optional)', value: given.text }),
  field({ name: 'expires', label: 'Ends after (optional)', value: given.expires, example: '90d' }),
]

/** The question for a new entry. `problem` is the mistake in the form that was sent; null for none. */
export const newSuppressionScreen = (view: View, given: SuppressionText, problem: FormProblem | null): Screen =>
  questionPanel({
    place: 'suppressions',
    question: 'Add to the suppression list',
    about:
      'It has effect from the next RCPT on, at all nodes of a shared queue within a second, in place of the entry with the same address and sender domain.',
    action: linkTo(view, 'new-suppression'),
    button: 'Add the address',
    fields: entryFields(given),
    problem,
    back: linkTo(view, 'suppressions'),
    words: ['suppression', 'add', 'ADDRESS', '--reason', 'manual'],
    call: { method: 'POST', path: 'api/v1/suppressions', body: { address: 'ADDRESS', reason: 'manual' } },
  })

/** Consequence of the removal of an entry, beside other entries that refuse the same mail. */
function afterRemoval(address: string, others: readonly SuppressionJson[]): string {
  if (others.length > 0) return 'Other entries still refuse mail to it.'
  return address.startsWith('@')
    ? 'Mail to its addresses is accepted from then on, unless they have entries of their own.'
    : 'Mail to it is accepted from then on.'
}

/** `@far.example, senders of us.example`, each on a line. */
const othersPart = (others: readonly SuppressionJson[]): Part =>
  others.length === 0 ? null : others.map((one) => html`<div>${addressPart(one.address)}, senders: ${sendersOf(one)}</div>`)

/** `others` are the entries that refuse mail to the address when this one is removed. */
export const suppressionRemovalScreen = (view: View, entry: SuppressionJson, others: readonly SuppressionJson[]): Screen => {
  const { scope, address, reason, text } = entry
  return questionPanel({
    place: 'suppressions',
    question: `Remove ${address}?`,
    about: `${afterRemoval(address, others)} Refusals that were counted are forgotten.`,
    action: linkTo(view, 'suppressions/remove'),
    button: 'Remove the entry',
    facts: html`${hidden({ scope, address })}
    ${facts([
      ['senders', sendersOf(entry)],
      ['reason', reason],
      ['text', text === null ? null : breakable(text), 'wide'],
      ['listed', listedPart(view, entry)],
      ['ends', endOf(view, entry)],
      ['still refused by', othersPart(others), 'wide'],
      ['undo', html`<strong>not possible</strong>`],
    ])}`,
    back: linkTo(view, 'suppressions'),
    words: ['suppression', 'remove', address, '--scope', scope],
    call: { method: 'POST', path: 'api/v1/suppressions/remove', body: { entries: [{ scope, address }] } },
  })
}

export const resumptionScreen = (view: View, scope: string): Screen =>
  questionPanel({
    place: 'suppressions',
    question: `List addresses for ${scope} again?`,
    about: 'Look first at the entries of the last hours: a directory that is down refuses everybody as unknown.',
    action: linkTo(view, 'suppressions/resume'),
    button: 'Resume the listing',
    facts: hidden({ scope }),
    back: linkTo(view, 'suppressions', { scope, since: '2h' }),
    words: ['suppression', 'resume', scope],
    call: { method: 'POST', path: 'api/v1/suppressions/resume', body: { scope } },
  })
