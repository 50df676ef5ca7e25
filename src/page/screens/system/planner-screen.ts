/** The planner: what retry policies do to mail that is deferred, before they are set. */
import { replay, type Replay } from '../../../planner/replay.ts'
import type { PlanJson } from '../../../resources/plans/retry-plan-json.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { field } from '../../markup/fields.ts'
import { heading, section, type Screen } from '../../markup/frame.ts'
import { html, type Html } from '../../../presentation/html.ts'
import { ownSettings } from '../../markup/own-settings.ts'
import { linkTo } from '../../markup/links.ts'
import { shapeOf } from '../../markup/marks.ts'
import { table, type Column } from '../../markup/html-table.ts'
import { count, messages, span } from '../../markup/times.ts'
import { schedulePlots } from '../../../presentation/plots/schedule-plots.ts'
import { svgPlot } from '../../../presentation/plots/svg-plot.ts'
import type { View } from '../../markup/view.ts'
import { breakable } from '../../markup/long-words.ts'

export interface PlannerQuery {
  readonly policy: string
  readonly other: string
  readonly minimal: string
  readonly maximal: string
  readonly lifetime: string
  readonly attempts: string
}

interface PlannerFacts {
  readonly query: PlannerQuery
  readonly plans: readonly PlanJson[]
  /** Ages in seconds of the oldest messages that wait now. */
  readonly waiting: readonly number[]
  /** Names of the settings in which the nodes of a shared queue differ. */
  readonly differing: readonly string[]
  readonly problem: string | null
}

const duration = (seconds: number | null): string => (seconds === null ? '–' : span(seconds * 1_000))

const plannerForm = (view: View, query: PlannerQuery): Html =>
  html`<form class="filter" action="${linkTo(view, 'planner')}" method="get">
    ${field({ name: 'policy', label: 'Policy (retry_backoff)', value: query.policy, example: 'doubling' })}
    ${field({ name: 'other', label: 'Compare with', value: query.other, example: 'table(5m,1h,4h)' })}
    ${field({ name: 'minimal', label: 'minimal_backoff_time', value: query.minimal, example: '5m' })}
    ${field({ name: 'maximal', label: 'maximal_backoff_time', value: query.maximal, example: '4000s' })}
    ${field({ name: 'lifetime', label: 'maximal_queue_lifetime', value: query.lifetime, example: '2d' })}
    ${field({ name: 'attempts', label: 'maximal_delivery_attempts', value: query.attempts, example: '0' })}
    <button type="submit">Plan</button>
  </form>`

interface Figure {
  readonly name: string
  readonly value: (plan: PlanJson) => string
}

const FIGURES: readonly Figure[] = [
  { name: 'Attempts within 1 hour', value: ({ tries }) => count(tries.by_1h) },
  { name: 'Attempts within 1 day', value: ({ tries }) => count(tries.by_24h) },
  { name: 'Attempts in all', value: ({ tries }) => count(tries.lifetime) },
  { name: 'Delay warning after', value: ({ warning }) => (warning === null ? 'none' : duration(warning)) },
  { name: 'Returned after', value: ({ bounce }) => duration(bounce) },
]

function outageFigures(plans: readonly PlanJson[]): readonly Figure[] {
  const [first] = plans
  return (first?.outages ?? []).map(({ outage }, i) => ({
    name: `Outage of ${duration(outage)}: mean, longest extra wait`,
    value: (plan) => {
      const one = plan.outages[i]
      if (one === undefined || one.mean_extra_wait === null) return 'returned'
      const lost = one.share_lost > 0.0005 ? `; ${(100 * one.share_lost).toFixed(1)} % returned` : ''
      return `${duration(one.mean_extra_wait)}, ${duration(one.worst_extra_wait)}${lost}`
    },
  }))
}

const columnsOf = (plans: readonly PlanJson[]): readonly Column<Figure>[] => [
  { heading: 'Figure', label: '', isTitle: true, cell: ({ name }) => name },
  ...plans.map((plan) => ({
    heading: html`<code>${breakable(plan.policy)}</code>`,
    label: plan.policy,
    kind: 'number' as const,
    cell: ({ value }: Figure) => value(plan),
  })),
]

const plotSections = (plans: readonly PlanJson[]): readonly Html[] =>
  schedulePlots(plans.map(({ policy, attempts }) => ({ name: policy, attempts: attempts.map((at) => (at ?? 0) * 1_000) }))).map((plot) =>
    section(
      plot.title,
      html`<p class="about">${plot.about}</p>
        <div class="panel-wide">${svgPlot(plot)}</div>`,
    ),
  )

/** In seconds. The queued messages are counted by their wait until the next attempt. */
const WAITS = [300, 3_600, 14_400]

/** The mail that waits now under each policy. */
function replaySection(plans: readonly PlanJson[], waiting: readonly number[]): Html | null {
  if (waiting.length === 0) return null
  const counted = new Map(plans.map((plan) => [plan, replay(plan, waiting, WAITS)]))
  const row = (name: string, pick: (one: Replay) => number | undefined): Figure => ({
    name,
    value: (plan) => {
      const one = counted.get(plan)
      return one === undefined ? '–' : count(pick(one) ?? 0)
    },
  })
  const rows = [
    ...WAITS.map((wait, i) =>
      row(i === 0 ? `Within ${duration(wait)}` : `After that, within ${duration(wait)}`, ({ within }) => within[i]),
    ),
    row('Later', ({ later }) => later),
    row('Returned at once', ({ returned }) => returned),
  ]
  return section(
    'The mail that waits now',
    table({ caption: 'Next attempts of the mail that waits', columns: columnsOf(plans), rows, empty: '' }),
    {
      aside: `next attempt of the oldest ${messages(waiting.length)}, as if the policy had applied since the arrival`,
    },
  )
}

/** The settings of the first policy, to paste into the configuration. */
const settings = ({ policy, minimal, maximal, lifetime, attempts }: PlannerQuery): string =>
  [
    `retry_backoff = ${JSON.stringify(policy)}`,
    `minimal_backoff_time = ${JSON.stringify(minimal)}`,
    `maximal_backoff_time = ${JSON.stringify(maximal)}`,
    `maximal_queue_lifetime = ${JSON.stringify(lifetime)}`,
    `maximal_delivery_attempts = ${attempts}`,
  ].join('\n')

export function plannerScreen(view: View, { query, plans, waiting, differing, problem }: PlannerFacts): Screen {
  const ofNode = ownSettings(view, differing)
  const texts = plans.map(({ policy }) => policy)
  return {
    title: 'Planner',
    place: 'planner',
    main: html`${heading('Planner', 'What a retry policy does to mail that stays deferred, and how long mail waits after an outage has ended. Nothing is changed here.')}
    ${plannerForm(view, query)} ${ofNode === null ? null : html`<p class="faint">What is not entered is ${ofNode}.</p>`}
    ${problem === null ? null : html`<p class="problem" role="alert">${shapeOf('warning')} ${problem}</p>`}
    ${
      plans.length === 0
        ? null
        : [
            plotSections(plans),
            section(
              'Figures',
              html`${table({ caption: 'Figures', columns: columnsOf(plans), rows: [...FIGURES, ...outageFigures(plans)], empty: '' })}
                <p class="faint">
                  Extra waits are those of mail that arrived when the outage began, over outages that are up to 10 % shorter or longer. What
                  is returned is a share of all mail of the outage.
                </p>`,
            ),
            replaySection(plans, waiting),
            section('To set it', html`<pre class="settings"><code>${settings(query)}</code></pre>`),
          ]
    }
    ${asCommand(['simulate', 'schedule', '--queue', ...texts.flatMap((text) => ['--policy', text])], null)}`,
  }
}
