/** Page of the planner: the attempts of each policy, and the extra wait after outages. */
import { type Duration, HOUR, MINUTE } from '../../system/clock.ts'
import type { Page } from './page.ts'
import type { Plot } from './plot.ts'
import { type Plan, planOutage } from '../../planner/plan.ts'

const inMinutes = (duration: Duration): number => Number((duration / MINUTE).toPrecision(5))
const inHours = (duration: Duration): number => Number((duration / HOUR).toPrecision(5))

/** Number of points of a curve, for outages from five minutes to five days. */
const CURVE_POINTS = 80

function outageCurve({ name, attempts }: Plan): Plot['series'][number] {
  const points: (readonly [number, number])[] = []
  for (let i = 0; i <= CURVE_POINTS; i++) {
    const outage = 5 * MINUTE * 1440 ** (i / CURVE_POINTS)
    const { mean } = planOutage(attempts, outage)
    if (mean !== null) points.push([inHours(outage), inMinutes(mean)])
  }
  return { name, points }
}

/** Maximum number of marks of a policy in the plot. The curve of attempts shows the remaining attempts. */
const MOST_MARKS = 500

export function schedulePage(plans: readonly Plan[], table: Page['table'], command: string): Page {
  return {
    title: 'Retry schedules',
    about:
      'Attempts for mail that is never accepted, from arrival to its return. Waits are those of mail that arrived when the outage began; the end of the outage is uniform within ± 10 %. A † means that some mail of that outage is returned before the end.',
    command,
    table,
    plots: [
      {
        title: 'Attempts',
        about: 'Each mark is an attempt; the mail is returned after the last one. The logarithmic axis starts after the first minute.',
        kind: 'scatter',
        x: { title: 'hours since arrival', scale: 'logarithmic' },
        y: { title: '', scale: 'linear', labels: plans.map(({ name }) => name) },
        series: plans.map(({ name, attempts }, i) => ({
          name,
          points: [...attempts.filter((at) => at >= MINUTE).slice(0, MOST_MARKS), attempts.at(-1) ?? 0].map(
            (at) => [inHours(at), i] as const,
          ),
        })),
      },
      {
        title: 'Extra wait after an outage',
        about:
          'Mean extra wait after recovery. The longest wait decides it, not the first one. A line ends where mail is returned before the end of the outage.',
        kind: 'line',
        x: { title: 'hours of outage', scale: 'logarithmic' },
        y: { title: 'minutes of extra wait', scale: 'logarithmic' },
        series: plans.map(outageCurve),
      },
      {
        title: 'Number of attempts',
        about: 'Attempts made so far: the cost of short waits.',
        kind: 'line',
        stepped: true,
        x: { title: 'hours since arrival', scale: 'linear' },
        y: { title: 'attempts', scale: 'linear' },
        series: plans.map(({ name, attempts }) => ({ name, points: thinned(attempts.map((at, i) => [inHours(at), i + 1] as const)) })),
      },
    ],
  }
}

const MOST_POINTS = 1000

/** Reduces the points to every n-th and the last one, to limit the size of a page. */
export function thinned<T>(points: readonly T[]): readonly T[] {
  const stride = Math.ceil(points.length / MOST_POINTS)
  return points.filter((_, i) => i % stride === 0 || i === points.length - 1)
}
