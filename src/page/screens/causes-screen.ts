/** The causes for which mail waits, summed over destinations, with the operations on the mail of each. Mail on hold is apart. */
import type { CauseJson, SummedCauseJson } from '../../resources/cause-json.ts'
import { causeTitle, destinationsText } from '../../resources/cause-json.ts'
import type { PlacedSum, PlacedSums } from '../../queries/counts/causes.ts'
import { bar } from '../markup/charts.ts'
import { asCommand } from '../markup/command-lines.ts'
import { heading, section, type Screen } from '../markup/frame.ts'
import { html, joined, type Html, type Part } from '../../presentation/html.ts'
import { messageLink, providerLink } from '../markup/links.ts'
import { marked } from '../markup/marks.ts'
import { replyPart } from '../markup/reply.ts'
import { table, type Column } from '../markup/html-table.ts'
import { ago, clockTime, count } from '../markup/times.ts'
import type { View } from '../markup/view.ts'
import { countingNotice, untilCounted } from './counting-screen.ts'
import { selectionLinks } from './selection-links.ts'
import { destinationPart } from '../markup/long-words.ts'

export const causeCell = (one: Pick<CauseJson, 'kind' | 'cause' | 'stage' | 'hint'>): Part =>
  replyPart(causeTitle(one), { hint: one.hint, about: one.stage === null ? null : html`at ${one.stage}` })

interface Tables<Cause> {
  /** `most` is the largest number of recipients in the table. */
  readonly columns: (most: number) => readonly Column<Cause>[]
  readonly empty: string
  readonly at: number
}

/** The causes of mail that waits and, below them, of mail on hold. */
export function causeTables<Cause extends CauseJson | SummedCauseJson>(
  view: View,
  causes: readonly Cause[],
  { columns, empty, at }: Tables<Cause>,
): Html {
  const part = (title: string, rows: readonly Cause[]): Html => {
    const most = Math.max(1, ...rows.map(({ recipients }) => recipients))
    const inexact = rows.some((one) => one.filter !== null && !one.filter_is_exact)
    const note = html`<p class="faint">Some of these selections also contain other mail; the dry run shows how many messages.</p>`
    return section(
      title,
      html`${table({ caption: 'Causes', columns: columns(most), rows, empty, kind: 'causes' })}${inexact ? note : null}`,
      {
        aside: html`as of ${clockTime(view, at)}`,
      },
    )
  }
  const held = causes.filter(({ on_hold: isHeld }) => isHeld)
  const waiting = causes.filter(({ on_hold: isHeld }) => !isHeld)
  return html`${part('Why it waits', waiting)} ${held.length === 0 ? null : part('On hold', held)}`
}

const actions = (view: View, { filter }: SummedCauseJson): Part => (filter === null ? null : selectionLinks(view, { ...filter }, 'causes'))

/** Facts about destinations. */
export interface Places {
  /** The provider of a destination; null for none. */
  readonly providerOf: (destination: string) => string | null
  readonly isSuspended: (destination: string) => boolean
}

/** The largest destinations, each with its provider. Mail of a suspended one waits until it is resumed, whatever its last reply: it says so. */
function place(view: View, one: PlacedSum, { providerOf, isSuspended }: Places): Html {
  const names = one.largest_destinations.map((name) => {
    const provider = providerOf(name)
    const part = provider === null ? null : html` <span class="faint">of <a href="${providerLink(view, provider)}">${provider}</a></span>`
    return html`${destinationPart(view, name)}${part}${!one.on_hold && isSuspended(name) ? html` ${marked('suspended')}` : null}`
  })
  if (one.destinations === 1) return html`${names}`
  const suspended = one.on_hold || one.suspended === 0 ? null : `, ${count(one.suspended)} suspended`
  const more = one.destinations > names.length ? ', …' : null
  return html`${destinationsText(one)}${suspended}<span class="faint">: ${joined(names, ', ')}${more}</span>`
}

const sumColumns = (view: View, most: number, places: Places): readonly Column<PlacedSum>[] => [
  { heading: 'Cause', isTitle: true, kind: 'reply', cell: causeCell },
  { heading: 'Recipients', kind: 'number', cell: ({ recipients }) => html`${count(recipients)}${bar(recipients / most, 'warn')}` },
  { heading: 'Destinations', cell: (one) => place(view, one, places) },
  { heading: 'Since', cell: ({ since }) => (since === null ? '–' : clockTime(view, since)) },
  { heading: 'Last', cell: ({ last_time: last }) => (last === null ? '–' : ago(view, last)) },
  {
    heading: 'Example',
    kind: 'code',
    cell: ({ example }) => (example === null ? '–' : html`<a href="${messageLink(view, example.queue_id)}">${example.queue_id}</a>`),
  },
  { heading: 'These', label: '', kind: 'actions', cell: (cause) => actions(view, cause) },
]

const PATH = 'api/v1/causes'

/** `causes` is null while they are counted. */
export const causesScreen = (view: View, causes: PlacedSums | null, places: Places): Screen => ({
  title: 'Causes',
  place: 'causes',
  ...(causes === null ? untilCounted(PATH) : {}),
  main: html`${heading('Causes', 'The replies for which mail waits, summed over destinations. Mail of a suspended destination waits until it is resumed.')}
  ${
    causes === null
      ? section(
          'Why it waits',
          countingNotice('The causes are being counted, which takes some seconds with much mail; they follow by themselves.'),
        )
      : causeTables(view, causes.causes, {
          columns: (most) => sumColumns(view, most, places),
          empty: 'No mail waits.',
          at: causes.as_of,
        })
  }
  ${asCommand(['queue', 'causes'], { method: 'GET', path: PATH })}`,
})
