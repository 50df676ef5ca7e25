/** One destination: its state, the causes for which its mail waits, and what can be done about it. */
import type { CauseJson, CausesJson } from '../../resources/cause-json.ts'
import type { DestinationDetailsJson } from '../../resources/destination-json.ts'
import { ownSettings } from '../markup/own-settings.ts'
import { isClosed } from '../../store/destination-status.ts'
import { bar, outcomeStrip } from '../markup/charts.ts'
import { alsoSuspendedWith, deathText, rateFact } from '../../presentation/destination-state.ts'
import { lookOf } from '../../presentation/plots/series-look.ts'
import { svgPlot } from '../../presentation/plots/svg-plot.ts'
import { asCommand } from '../markup/command-lines.ts'
import { answer, buttonLink, heading, section, type Screen } from '../markup/frame.ts'
import { html, joined, type Html, type Part } from '../../presentation/html.ts'
import { destinationLink, linkTo, logLink, messageLink, providerLink, type Query } from '../markup/links.ts'
import { replyPart } from '../markup/reply.ts'
import { facts, table, type Column } from '../markup/html-table.ts'
import { ago, clockTime, count, distance, due, instantOf, plural } from '../markup/times.ts'
import { visiblePattern, type View } from '../markup/view.ts'
import { countingNotice, untilCounted } from './counting-screen.ts'
import { causeCell, causeTables } from './causes-screen.ts'
import { destinationSentence, laterProbes } from './destination-sentence.ts'
import { selectionLinks } from './selection-links.ts'
import { ownerTrouble, stateCell } from './destinations-screen.ts'
import { rulePart } from './providers-screen.ts'
import type { SendersJson } from '../../resources/senders-json.ts'
import { queryText } from '../markup/links.ts'
import { sendersSection } from './senders-list.ts'

export interface DestinationFacts {
  readonly destination: DestinationDetailsJson
  /** Null while the causes are counted. */
  readonly causes: CausesJson | null
  /** Null while they are counted. */
  readonly senders: SendersJson | null
  /** Settings in which the nodes differ. */
  readonly differing: readonly string[]
}

/** `a probe is due in 4m`, or why it has not begun. */
function probeSentence(view: View, one: DestinationDetailsJson): Part {
  if (one.probed) return 'it is being probed'
  if (one.probe_time !== null && instantOf(one.probe_time) > view.now) return html`a probe is due ${due(view, one.probe_time)}`
  return one.blocked_by === null ? 'a probe is due' : html`a probe is due (${one.blocked_by})`
}

/** Why no further delivery begins; empty when one may. */
const blockedSentence = ({ blocked_by: why }: DestinationDetailsJson): Part =>
  why === null ? '' : ` No further delivery begins now: ${why}.`

/** `by page:ann`, or `with provider google by page:ann`, whose suspension ends it. */
const suspenderPart = (
  view: View,
  { suspended_with: provider, suspended_by: by }: Pick<DestinationDetailsJson, 'suspended_with' | 'suspended_by'>,
): Part =>
  provider === null
    ? html`by ${by ?? 'an operator'}`
    : html`with provider <a href="${providerLink(view, provider)}">${provider}</a> by ${by}`

/** `Suspended by root, resumes in 2m: maintenance.`; with the provider, too, whose suspension may last longer. */
function suspendedSentence(view: View, one: DestinationDetailsJson): Html {
  const { suspended_until: until, suspend_reason: reason, provider_suspended_by: providerBy } = one
  const also = alsoSuspendedWith(one)
  const end = until === null ? ' until it is resumed' : html`, ${also === null ? 'resumes' : 'ends'} ${due(view, until)}`
  return html`Suspended
  ${suspenderPart(view, one)}${end}${reason === null ? '' : `: ${reason}`}${also === null ? null : html`; also ${suspenderPart(view, { suspended_with: also, suspended_by: providerBy })}`}.`
}

function stateSentence(view: View, one: DestinationDetailsJson): Part {
  const owner = ownerTrouble(view, one)
  if (owner !== null)
    return owner === 'none'
      ? 'No node schedules it now: its mail waits until one does.'
      : html`Its node ${owner} does not answer, so that its state is not known. The recipients in flight are those that the node has
        claimed.`
  if (one.refuses_all)
    return html`No delivery in the last
    ${plural(one.undelivered_attempts, 'attempt')}${
      one.undelivered_since === null ? null : html`, the first of them ${distance(view, one.undelivered_since)}`
    }.`
  switch (one.state) {
    case 'dead':
      // A probe is an attempt of mail that waits.
      if (one.waiting === 0 && !one.probed) return `Dead: ${deathText(one.site_stage)}. The next mail for it is a probe.`
      return html`Dead: ${deathText(one.site_stage)}. Its mail waits;
      ${probeSentence(view, one)}${laterProbes(one.probe_interval, one.settings)}.`
    case 'suspended':
      return suspendedSentence(view, one)
    case 'throttled':
      return html`Throttled: its servers refused some connections or mail, or a rate is set, so fewer deliveries are
      made.${blockedSentence(one)}`
    case 'open':
      return html`Open: deliveries begin when mail is due.${blockedSentence(one)}`
  }
}

const buttonsOf = (view: View, { destination, state, waiting, suspended_with: suspendedWith }: DestinationDetailsJson): Part => {
  if (!view.requester.mayOperate) return null
  const place = destinationLink(view, destination)
  return [
    waiting === 0
      ? null
      : buttonLink(
          linkTo(view, 'operations/new', { operation: 'flush', destination, back: `destinations/${encodeURIComponent(destination)}` }),
          'Flush…',
        ),
    suspendedWith !== null ? buttonLink(`${providerLink(view, suspendedWith)}/resume`, `Resume ${suspendedWith}…`, 'primary') : null,
    state === 'suspended' && suspendedWith === null
      ? buttonLink(`${place}/resume`, 'Resume…', 'primary')
      : buttonLink(`${place}/suspend`, 'Suspend…'),
  ]
}

/** Links to the operations on the mail of one cause. */
const causeActions = (view: View, { filter, destination }: CauseJson): Part =>
  filter === null ? null : selectionLinks(view, { ...filter }, `destinations/${encodeURIComponent(destination)}`)

const causeColumns = (view: View, most: number): readonly Column<CauseJson>[] => [
  {
    heading: 'Cause',
    isTitle: true,
    kind: 'reply',
    cell: causeCell,
  },
  { heading: 'Recipients', kind: 'number', cell: ({ recipients }) => html`${count(recipients)}${bar(recipients / most, 'warn')}` },
  { heading: 'Since', cell: ({ since }) => (since === null ? '–' : clockTime(view, since)) },
  { heading: 'Last', cell: ({ last_time: last }) => (last === null ? '–' : ago(view, last)) },
  {
    heading: 'Example',
    kind: 'code',
    cell: ({ example }) => (example === null ? '–' : html`<a href="${messageLink(view, example.queue_id)}">${example.queue_id}</a>`),
  },
  { heading: 'These', label: '', kind: 'actions', cell: (cause) => causeActions(view, cause) },
]

const causesSections = (view: View, { waiting }: DestinationDetailsJson, { causes, as_of: at }: CausesJson): Html =>
  causeTables(view, causes, {
    columns: (most) => causeColumns(view, most),
    // Mail for later is no part of the deferred queue, whose causes are counted.
    empty:
      waiting === 0
        ? 'No mail waits for this destination.'
        : 'None of the mail that waits was tried: it is scheduled for later, or has just come.',
    at,
  })

/** The provider with its deliveries and, when the destination is suspended itself, the suspension of the provider beside it. */
const providerPart = (view: View, one: DestinationDetailsJson, provider: string): Html =>
  html`<a href="${providerLink(view, provider)}">${provider}</a>${providerSlots(one)}${
      alsoSuspendedWith(one) === null ? null : `, suspended by ${one.provider_suspended_by ?? 'an operator'}`
    }`

/** `: 12 of 40 deliveries`, to all destinations of the provider. */
const providerSlots = ({ provider_in_flight: flight, provider_limit: limit }: DestinationDetailsJson): string => {
  if (flight === null) return ''
  return limit === null
    ? `: ${count(flight)} ${flight === 1 ? 'delivery' : 'deliveries'}`
    : `: ${count(flight)} of ${count(limit)} deliveries`
}

/** In pixels, without the labels. */
const WINDOW_HEIGHT = 90

/** The last changes of the window until the present one, which begins anew after a time without deliveries, and its limit. */
function windowSection({ last_windows: last, window: present, settings }: DestinationDetailsJson): Html | null {
  const windows = present === null || last.at(-1) === present ? last : [...last, present]
  if (windows.length < 2) return null
  const limit = settings.values['destination_concurrency_limit']
  const plot = {
    title: 'Deliveries that may run at once, after each of the last changes',
    about: 'Window of the destination.',
    kind: 'line',
    stepped: true,
    x: { title: 'changes until now', scale: 'linear', values: 'counts' },
    y: { title: 'deliveries at once', scale: 'linear', values: 'counts', includes: [0] },
    series: [{ name: 'window', points: [...windows, windows.at(-1) ?? 0].map((window, i) => [i - windows.length, window] as const) }],
  } as const
  return section('Window', html`<div class="panel-wide">${svgPlot(plot, { looks: [WINDOW_LOOK], height: WINDOW_HEIGHT })}</div>`, {
    aside: `${count(windows[0] ?? 0)} → ${count(windows.at(-1) ?? 0)}${limit === undefined ? '' : `, limit ${limit}`}`,
  })
}

const WINDOW_LOOK = { ...lookOf(0), colour: 'var(--busy)' }

function outcomesFact(outcomes: readonly string[]): Part {
  if (outcomes.length === 0) return null
  const delivered = outcomes.filter((outcome) => outcome === 'delivered').length
  return html`${outcomeStrip(outcomes, Math.min(50, outcomes.length))}
    <span class="figure">${count(delivered)} of ${count(outcomes.length)} delivered</span>`
}

type Setting = readonly [name: string, value: string]

const settingsSection = ({ settings: { values, origins } }: DestinationDetailsJson): Html | null =>
  Object.keys(values).length === 0
    ? null
    : html`<details class="settings">
        <summary>Settings that apply</summary>
        ${table({
          caption: 'Settings',
          columns: [
            { heading: 'Parameter', isTitle: true, kind: 'code', cell: ([name]: Setting) => name },
            { heading: 'Value', kind: 'code', cell: ([, value]: Setting) => value },
            { heading: 'From', cell: ([name]: Setting) => (origins[name] === undefined ? 'general' : html`<code>${origins[name]}</code>`) },
          ],
          rows: Object.entries(values),
          empty: '',
        })}
      </details>`

/** The parameters of the planner for mail with these settings. */
const plannedWith = (values: DestinationDetailsJson['settings']['values']): Query => ({
  policy: values['retry_backoff'],
  minimal: values['minimal_backoff_time'],
  maximal: values['maximal_backoff_time'],
  lifetime: values['maximal_queue_lifetime'],
  attempts: values['maximal_delivery_attempts'],
})

/** Links to what else is known about a destination. */
const elsewhere = (view: View, name: string, values: DestinationDetailsJson['settings']['values'] = {}): Html =>
  html`<p class="faint">
    ${joined(
      [
        // The history has the addresses of recipients; mail for a configured host is for many domains.
        ...(name.includes(':')
          ? []
          : [html`<a href="${linkTo(view, 'history', { recipient: `*@${name}` })}">Mail for ${name} that has left</a>`]),
        ...(visiblePattern(view) === null
          ? [html`<a href="${logLink(view, { destination: name })}">Warnings of the log about it</a>`]
          : []),
        html`<a href="${linkTo(view, 'planner', plannedWith(values))}">Compare retry settings</a>`,
      ],
      ' · ',
    )}
  </p>`

/** A destination without queued mail and without a recorded state, to which the history and the trends may still link. */
export const restingDestinationScreen = (view: View, name: string): Screen => ({
  title: name,
  place: 'destinations',
  main: html`${heading(html`<span class="name">${name}</span>`, 'No mail waits for it.', null)}
  ${answer('Nothing is recorded about its servers: new mail for it is tried at once.')} ${elsewhere(view, name)}`,
})

export function destinationScreen(view: View, { destination: one, causes, senders, differing }: DestinationFacts): Screen {
  const name = one.destination
  const resource = `api/v1/destinations/${encodeURIComponent(name)}`
  return {
    title: name,
    place: 'destinations',
    ...(causes === null
      ? untilCounted(`${resource}/causes`)
      : senders === null
        ? untilCounted(`api/v1/senders${queryText({ destination: name, waits: 'true', limit: 1 })}`)
        : { live: { path: resource } }),
    main: html`${heading(html`<span class="name">${name}</span> ${stateCell(view, one)}`, stateSentence(view, one), buttonsOf(view, one))}
      ${answer(destinationSentence(one, causes?.causes ?? null, view), null, 'answer')}
      ${facts(
        [
          [
            'waiting',
            html`<a href="${linkTo(view, 'messages', { destination: name })}"
              ><span data-live="waiting" data-form="count">${count(one.waiting)}</span> ${one.waiting === 1 ? 'recipient' : 'recipients'}</a
            >`,
          ],
          [
            'in flight',
            html`<span data-live="in_flight" data-form="count">${count(one.in_flight)}</span> of
              ${one.window === null ? '–' : html`<span data-live="window" data-form="count">${count(one.window)}</span>`} at once`,
          ],
          ['message rate', rateFact(one.message_rate)],
          ['waiting for a slot', one.slot_waiting === null || one.slot_waiting === 0 ? null : plural(one.slot_waiting, 'recipient')],
          ['provider', one.provider === null ? null : providerPart(view, one, one.provider)],
          ...one.provider_rules.map((rule) => [`rule ${rule.rule}`, rulePart(view, rule), 'wide'] as const),
          ['next due', one.next_due_time === null || isClosed(one) ? null : due(view, one.next_due_time)],
          ['last reply', replyPart(one.last_reply), 'wide'],
          ['to do', one.hint, 'wide'],
          ['last outcomes', outcomesFact(one.last_outcomes)],
          ['node', one.node],
          ['shown', ownSettings(view, differing), 'wide'],
        ],
        'facts',
      )}
      <div data-fragment="causes">
        ${causes === null ? section('Why it waits', countingNotice('The causes are being counted, which takes some seconds with much mail; they follow by themselves.')) : causesSections(view, one, causes)}
      </div>
      ${sendersSection(view, senders, name)}
      <div data-fragment="window">${windowSection(one)}</div>
      ${settingsSection(one)} ${elsewhere(view, name, one.settings.values)}
      ${asCommand(['destination', 'show', name], { method: 'GET', path: resource })}`,
  }
}
