/** The figures of the first screen: rates, queues, and messages by age. */
import { QUEUE_NAMES } from '../../mail/message.ts'
import type { NowJson, SeriesJson } from '../../resources/status-json.ts'
import { bar, thinned } from '../markup/charts.ts'
import { section } from '../markup/frame.ts'
import { ADDRESSES_NAMED } from '../../presentation/delivery-slots.ts'
import { html, type Html } from '../../presentation/html.ts'
import { linkTo, messageLink } from '../markup/links.ts'
import { marked } from '../markup/marks.ts'
import { age, count, rate, span } from '../markup/times.ts'
import { sparkline } from '../../presentation/plots/svg-plot.ts'
import { MINUTE } from '../../system/clock.ts'
import type { View } from '../markup/view.ts'

/** Recipients per second in intervals of equal length, oldest first. */
interface ShownSeries extends Pick<SeriesJson, 'interval' | 'counts'> {
  readonly range: '1h' | '6h' | '24h'
}

export interface NowFacts {
  /** Null while the queue is counted after a start. */
  readonly now: NowJson | null
  readonly series: ShownSeries
}

const RATES = [
  ['accepted', 'Accepted', 'busy'],
  ['delivered', 'Delivered', 'good'],
  ['deferred', 'Deferred', 'warn'],
  ['bounced', 'Bounced', 'bad'],
] as const

const RANGES = { '1h': 'last hour', '6h': 'last 6 hours', '24h': 'last day' } as const
const RANGE_NAMES = ['1h', '6h', '24h'] as const

/** More points would not show in the width of a curve. */
const MOST_POINTS = 120

function rateTile({ now, series }: NowFacts, [kind, name, tone]: (typeof RATES)[number]): Html {
  const perSecond = thinned(
    series.counts.map((counts) => counts[kind] / series.interval),
    MOST_POINTS,
  )
  const most = Math.max(0, ...perSecond)
  return html`<div class="tile">
    <p class="name">${name}</p>
    <p class="figure">
      <span data-live="rates/last_10s/${kind}" data-form="rate">${now === null ? '–' : rate(now.rates?.last_10s[kind] ?? 0)}</span
      ><span class="unit">/s</span>
    </p>
    ${sparkline(perSecond, `${name} per second, ${RANGES[series.range]}: at most ${rate(most)}`, tone)}
    <p class="note">
      <span data-live="last_hour/${kind}" data-form="count">${now === null ? '–' : count(now.last_hour[kind])}</span> in the last hour
    </p>
  </div>`
}

const rangeLinks = (view: View, chosen: ShownSeries['range']): Html =>
  html`<nav class="choices" aria-label="Range of the curves">
    ${RANGE_NAMES.map(
      (range) =>
        html`<a href="${linkTo(view, '', { range: range === '1h' ? null : range })}" ${range === chosen ? html` aria-current="true"` : null}
          >${range}</a
        >`,
    )}
  </nav>`

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
  const oldest = now?.oldest ?? null
  return html`<ul class="queues">
    ${entries.map(
      ([name, value, path]) =>
        html`<li${value === 0 || value === null ? html` class="none"` : null}><a href="${linkTo(view, 'messages', { queue: name })}"><span class="name">${marked(name)}</span> <span class="figure" data-live="${path}" data-form="count">${value === null ? '–' : count(value)}</span></a></li>`,
    )}${
      oldest === null
        ? null
        : html`<li class="oldest">
            <a href="${messageLink(view, oldest.queue_id)}"
              ><span class="name">oldest</span> <span class="figure">${age(view, oldest.arrival_time)}</span></a
            >
          </li>`
    }
  </ul>`
}

/** `Deliveries 23/100: 20 connecting to 192.0.2.31`, as slotsText of src/presentation/delivery-slots.ts. */
function slotsPart({ deliveries }: NowJson): Html | null {
  if (deliveries === null) return null
  const figure = (path: string, value: number) => html`<span data-live="deliveries/${path}" data-form="count">${count(value)}</span>`
  const connecting = deliveries.connecting
    .slice(0, ADDRESSES_NAMED)
    .map(
      ({ address, count: number }, n) =>
        html`${n === 0 ? ': ' : ', '}${figure(`connecting/${encodeURIComponent(address)}/count`, number)} connecting to ${address}`,
    )
  return html`<p class="note">Deliveries ${figure('in_flight', deliveries.in_flight)}/${count(deliveries.limit)}${connecting}</p>`
}

export const ratesSection = (view: View, facts: NowFacts): Html =>
  html`<section class="rates" aria-label="Rates">
    <div class="heading">
      <h2>Recipients per second</h2>
      ${rangeLinks(view, facts.series.range)}
    </div>
    <div class="tiles">${RATES.map((one) => rateTile(facts, one))}</div>
    ${facts.now === null ? null : slotsPart(facts.now)}
  </section>`

/** `40m`, `2h 40m` */
const minutes = (value: number): string => span(value * MINUTE)

/** The messages of the queue by age. Each count leads to the messages behind it. */
export function howOld(view: View, { ages }: NowJson): Html | null {
  if (ages === null) return null
  const most = Math.max(1, ...ages.counts)
  const columns = ages.limits.map((limit, n) => {
    const [from, value] = [ages.limits[n - 1] ?? null, ages.counts[n] ?? 0]
    const ends = { older_than: from === null ? null : `${from}m`, younger_than: limit === null ? null : `${limit}m` }
    const text =
      limit === null ? `over ${minutes(from ?? 0)}` : from === null ? `to ${minutes(limit)}` : `${minutes(from)} – ${minutes(limit)}`
    return html`<li${value === 0 ? html` class="none"` : null}><a href="${linkTo(view, 'messages', ends)}"><span class="name">${text}</span> <span class="figure" data-live="ages/counts/${n}" data-form="count">${count(value)}</span></a>${bar(value / most, 'busy')}</li>`
  })
  return section(
    'How old it is',
    html`<ul class="ages">
      ${columns}
    </ul>`,
    { aside: 'messages, counted every 30 s at most' },
  )
}
