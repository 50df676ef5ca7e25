/** The figures of the first screen: rates, queues, and messages by age. */
import { QUEUE_NAMES } from '../../mail/message.ts'
import type { NowJson } from '../../resources/status-json.ts'
import { bar } from '../markup/charts.ts'
import { section } from '../markup/frame.ts'
import { connectingText } from '../../presentation/delivery-slots.ts'
import { html, type Html } from '../../presentation/html.ts'
import { linkTo } from '../markup/links.ts'
import { renewed } from '../markup/renewed.ts'
import { marked } from '../markup/marks.ts'
import { count, span } from '../markup/times.ts'
import { MINUTE } from '../../system/clock.ts'
import type { View } from '../markup/view.ts'
import { flowSection, type FlowSeries } from './flow-chart.ts'

export interface NowFacts {
  /** Null while the queue is counted after a start. */
  readonly now: NowJson | null
  readonly series: FlowSeries
}

/** The queues with their counts, if these are known. Each count leads to the messages behind it. */
export function queueStrip(view: View, now: NowJson | null): Html {
  const figure = (counted: (known: NowJson) => number): number | null => (now === null ? null : counted(now))
  const entries = [
    ...QUEUE_NAMES.map(
      (name) =>
        [
          name,
          figure(({ queues }) => queues.find(({ queue_name: one }) => one === name)?.messages ?? 0),
          `queues/${name}/messages`,
        ] as const,
    ),
    ['trash', figure(({ trash }) => trash.messages), 'trash/messages'] as const,
  ]
  const items = entries.map(
    ([name, value, path]) =>
      html`<li${value === 0 || value === null ? html` class="none"` : null}${renewed(`queue ${name}`)}><a href="${linkTo(view, 'messages', { queue: name })}"><span class="name">${marked(name)}</span> <span class="figure" data-live="${path}" data-form="count">${value === null ? '–' : count(value)}</span></a></li>`,
  )
  return section(
    'Queues',
    html`<ul class="queues">
      ${items}
    </ul>`,
    { aside: 'messages' },
  )
}

/** `Deliveries 23/100: 20 connecting to 192.0.2.31`, as slotsText of src/presentation/delivery-slots.ts. */
function slotsPart({ deliveries }: NowJson): Html | null {
  if (deliveries === null) return null
  return html`<p class="note" ${renewed('deliveries')}>
    Deliveries
    <span data-live="deliveries/in_flight" data-form="count">${count(deliveries.in_flight)}</span>/${count(deliveries.limit)}<span
      data-live="deliveries/connecting"
      data-form="connecting"
      >${connectingText(deliveries.connecting)}</span
    >
  </p>`
}

export const flowFigures = (view: View, { now, series }: NowFacts): Html =>
  flowSection(view, series, { now, about: now === null ? null : slotsPart(now) })

/** `40m`, `2h 40m`, in one line. */
const minutes = (value: number): string => span(value * MINUTE).replace(' ', '\u00a0')

/** The messages of the queue by age. Each count leads to the messages behind it. */
export function howOld(view: View, { ages }: NowJson): Html | null {
  if (ages === null) return null
  const most = Math.max(1, ...ages.counts)
  const columns = ages.limits.map((limit, n) => {
    const [from, value] = [ages.limits[n - 1] ?? null, ages.counts[n] ?? 0]
    const ends = { older_than: from === null ? null : `${from}m`, younger_than: limit === null ? null : `${limit}m` }
    const text =
      limit === null ? `over ${minutes(from ?? 0)}` : from === null ? `to ${minutes(limit)}` : `${minutes(from)} – ${minutes(limit)}`
    return html`<li${value === 0 ? html` class="none"` : null}${renewed(`age ${n}`)}><a href="${linkTo(view, 'messages', ends)}"><span class="name">${text}</span> <span class="figure" data-live="ages/counts/${n}" data-form="count">${count(value)}</span></a>${bar(value / most, 'busy')}</li>`
  })
  return section(
    'How old it is',
    html`<ul class="ages">
      ${columns}
    </ul>`,
    { aside: 'messages, counted every 30 s at most' },
  )
}
