/** The fullest quotas, and the question before the counts of a key are reset. */
import { html, type Html, type Part } from '../../../presentation/html.ts'
import { grouped } from '../../../presentation/text.ts'
import type { QuotaUseJson } from '../../../resources/records/quota-json.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { hidden } from '../../markup/fields.ts'
import { buttonLink, heading, type Screen } from '../../markup/frame.ts'
import { facts, table, type Column } from '../../markup/html-table.ts'
import { linkTo } from '../../markup/links.ts'
import { addressPart, breakable } from '../../markup/long-words.ts'
import { questionPanel } from '../../markup/question-panel.ts'
import { distance } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'

interface QuotaFacts {
  readonly uses: readonly QuotaUseJson[]
  /** False without a [quota.NAME] table. */
  readonly isOn: boolean
  /** Names of the settings of quotas in which the nodes of a shared queue differ. */
  readonly differing: readonly string[]
}

const resetLink = (view: View, { key, quota }: QuotaUseJson): Html =>
  buttonLink(linkTo(view, 'quotas/reset', { key, quota }), 'Reset…', 'small')

const usedPart = ({ used, maximum, measure }: QuotaUseJson): Part => `${grouped(used)} of ${grouped(maximum)} ${measure}`

/** `hold`; `refuse` of a quota that would hold mail for too long. */
const actionText = ({ action, refuses }: QuotaUseJson): string =>
  refuses && action === 'hold' ? 'refused now, as longer than hold_limit' : action

const columnsOf = (view: View): readonly Column<QuotaUseJson>[] => [
  { heading: 'Key', isTitle: true, cell: ({ key }) => addressPart(key) },
  { heading: 'Quota', kind: 'code', cell: ({ quota }) => breakable(quota) },
  { heading: 'Limit, above it', cell: (one) => html`${one.limit} <span class="faint">${actionText(one)}</span>` },
  { heading: 'Used', cell: usedPart },
  { heading: 'Held', cell: ({ planned, measure }) => (planned === 0 ? null : `${grouped(planned)} ${measure}`) },
  { heading: 'Room', cell: ({ room_time: at }) => (at === null ? 'now' : distance(view, at)) },
  ...(view.requester.mayOperate
    ? [{ heading: 'Counts', label: '', kind: 'actions', cell: (one: QuotaUseJson) => resetLink(view, one) } as const]
    : []),
]

/** Says whose limits these are, where the nodes of a shared queue differ; null where they do not. */
const ownLimits = (view: View, differing: readonly string[]): Html | null =>
  differing.length === 0
    ? null
    : html`<p class="faint">
        These are the limits of ${view.node ?? view.relay}, which answers: the <a href="${linkTo(view, 'nodes')}">nodes</a> differ in
        ${differing.join(', ')}, and each counts new mail by its own.
      </p>`

export const quotasScreen = (view: View, { uses, isOn, differing }: QuotaFacts): Screen => ({
  title: 'Quotas',
  place: 'quotas',
  main: html`${heading(
    'Quotas',
    isOn ? 'What users, senders and clients have used of their quotas, the fullest first.' : 'No quota is configured.',
    null,
  )}
  ${ownLimits(view, differing)}
  ${table({ caption: 'Quotas', columns: columnsOf(view), rows: uses, kind: 'quotas', empty: 'No quota is used.' })}
  ${asCommand(['quota', 'list'], { method: 'GET', path: 'api/v1/quotas' })}`,
})

export const quotaResetScreen = (view: View, { key, quota }: { readonly key: string; readonly quota: string }): Screen =>
  questionPanel({
    place: 'quotas',
    question: `Reset the quota of ${key}?`,
    about: 'Mail that it holds is planned anew, and leaves as far as there is room.',
    action: linkTo(view, 'quotas/reset'),
    button: 'Reset the counts',
    facts: html`${hidden({ key, quota })}
    ${facts([
      ['key', breakable(key)],
      ['quota', breakable(quota)],
      ['undo', html`<strong>not possible</strong>`],
    ])}`,
    back: linkTo(view, 'quotas'),
    words: ['quota', 'reset', key, '--quota', quota],
    call: { method: 'POST', path: 'api/v1/quotas/reset', body: { key, quota } },
  })
