/** The shares of the queue: what waits, and what they had of the deliveries. */
import { html } from '../../../presentation/html.ts'
import { grouped, plural } from '../../../presentation/text.ts'
import type { SharesJson, ShareUseJson } from '../../../resources/share-json.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { heading, type Screen } from '../../markup/frame.ts'
import { table, type Column } from '../../markup/html-table.ts'
import { addressPart, breakable } from '../../markup/long-words.ts'

const percent = (part: number | null): string | null => (part === null ? null : `${(part * 100).toFixed(1)} %`)

const columnsOf = (shares: readonly ShareUseJson[]): readonly Column<ShareUseJson>[] => [
  { heading: 'Share', isTitle: true, cell: ({ key }) => (key === '' ? html`<span class="faint">none</span>` : addressPart(key)) },
  ...(shares.some((one) => one.class !== null)
    ? [{ heading: 'Class', kind: 'code', cell: (one: ShareUseJson) => breakable(one.class ?? '') } as const]
    : []),
  { heading: 'Weight', kind: 'number', cell: ({ weight }) => grouped(weight) },
  { heading: 'Waiting', kind: 'number', cell: ({ waiting }) => grouped(waiting) },
  { heading: 'In delivery', kind: 'number', cell: ({ in_flight: running }) => grouped(running) },
  { heading: 'Starts in a minute', kind: 'number', cell: ({ started }) => grouped(started) },
  { heading: 'Wanted', kind: 'number', cell: ({ wanted }) => percent(wanted) },
  { heading: 'Got', kind: 'number', cell: ({ got }) => percent(got) },
]

const about = ({ fair_share: isFair, total, shares }: SharesJson): string => {
  if (!isFair) return 'Deliveries are not shared fairly; set fair_share = "yes" for that.'
  const more = total > shares.length ? ` These are the first ${grouped(shares.length)} of ${plural(total, 'share')}.` : ''
  return `Recipients that wait and deliveries of each share, with the part of its class that it should have and had in the last minute.${more}`
}

export const sharesScreen = (answer: SharesJson): Screen => ({
  title: 'Shares',
  place: 'shares',
  main: html`${heading('Shares', about(answer), null)}
  ${answer.fair_share ? table({ caption: 'Shares', columns: columnsOf(answer.shares), rows: answer.shares, empty: 'No share has mail.' }) : null}
  ${asCommand(['queue', 'shares'], { method: 'GET', path: 'api/v1/shares' })}`,
})
