/** Plots of retry schedules: the attempts of each policy, the extra wait after outages, and the number of attempts. */
import { MINUTE } from '../../system/clock.ts'
import { planOutage, type Plan } from '../../planner/plan.ts'
import type { Plot } from './plot.ts'

type Scheduled = Pick<Plan, 'name' | 'attempts'>

/** Number of points of a curve, for outages from five minutes to five days. */
const CURVE_POINTS = 160

function outageCurve({ name, attempts }: Scheduled): Plot['series'][number] {
  const points: (readonly [number, number])[] = []
  for (let i = 0; i <= CURVE_POINTS; i++) {
    const outage = 5 * MINUTE * 1440 ** (i / CURVE_POINTS)
    const { mean } = planOutage(attempts, outage)
    if (mean !== null) points.push([Math.round(outage), Math.round(mean)])
  }
  return { name, points }
}

/** Maximum number of marks of a policy in the plot. The curve of attempts shows the remaining attempts. */
const MOST_MARKS = 500

export const schedulePlots = (plans: readonly Scheduled[]): readonly Plot[] => [
  {
    title: 'Attempts',
    about: `Each mark is an attempt, of a policy with more than ${MOST_MARKS} the first ${MOST_MARKS} and the last one; the mail is returned after the last one. The logarithmic axis leaves out the first minute.`,
    kind: 'scatter',
    x: { title: 'time since arrival', scale: 'logarithmic', values: 'durations' },
    y: { title: '', scale: 'linear', values: plans.map(({ name }) => name) },
    series: plans.map(({ name, attempts }, i) => ({
      name,
      points: [...attempts.filter((at) => at >= MINUTE).slice(0, MOST_MARKS), attempts.at(-1) ?? 0].map((at) => [at, i] as const),
    })),
  },
  {
    title: 'Extra wait after an outage',
    about:
      'Mean extra wait after recovery, of mail that arrived when the outage began. The longest wait decides it, not the first one. A line ends where mail is returned before the end of the outage.',
    kind: 'line',
    x: { title: 'length of the outage', scale: 'logarithmic', values: 'durations' },
    y: { title: 'mean extra wait', scale: 'logarithmic', values: 'durations' },
    series: plans.map(outageCurve),
  },
  {
    title: 'Number of attempts',
    about: 'Attempts made so far: the cost of short waits.',
    kind: 'line',
    stepped: true,
    x: { title: 'time since arrival', scale: 'linear', values: 'durations' },
    y: { title: 'attempts', scale: 'linear' },
    series: plans.map(({ name, attempts }) => ({ name, points: thinned(attempts.map((at, i) => [at, i + 1] as const)) })),
  },
]

/** Of a line of one plot. */
const MOST_POINTS = 1000

/** Reduces the points to every n-th and the last one, to limit the size of a page. */
export function thinned<T>(points: readonly T[]): readonly T[] {
  const stride = Math.ceil(points.length / MOST_POINTS)
  return points.filter((_, i) => i % stride === 0 || i === points.length - 1)
}
