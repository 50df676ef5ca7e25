/** The page of the planner: when each policy tries, and what outages cost. */
import { type Duration, HOUR, MINUTE } from '../mail/clock.ts'
import type { Page, Plot } from './page.ts'
import { type Plan, planOutage } from './plan.ts'

const inMinutes = (duration: Duration): number => Number((duration / MINUTE).toPrecision(5))
const inHours = (duration: Duration): number => Number((duration / HOUR).toPrecision(5))

/** Points of a curve over outages from five minutes to five days. */
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

/** More marks than this could not be told apart; the curve of tries shows them all the same. */
const MOST_MARKS = 500

export function schedulePage(plans: readonly Plan[], table: Page['table'], command: string): Page {
  return {
    title: 'When mail is tried again',
    about:
      'Mail that nobody takes, from arrival to its return to the sender. The waits are those of mail that came when the outage began; the end of the outage is uncertain by a tenth. A † means that some mail of that outage is returned before it ends.',
    command,
    table,
    plots: [
      {
        title: 'Attempts',
        about:
          'Each mark is an attempt; the last one is followed by the return of the mail. The first minute is left out, since the axis is logarithmic.',
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
        title: 'What an outage costs',
        about:
          'The mean extra wait after recovery. The cap decides it, not the first wait. A line ends where mail is returned before the outage is over.',
        kind: 'line',
        x: { title: 'hours of outage', scale: 'logarithmic' },
        y: { title: 'minutes of extra wait', scale: 'logarithmic' },
        series: plans.map(outageCurve),
      },
      {
        title: 'What it takes',
        about: 'Attempts made so far: the price of short waits.',
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

/** Every n-th point and the last, so that a page stays small. */
export function thinned<T>(points: readonly T[]): readonly T[] {
  const stride = Math.ceil(points.length / MOST_POINTS)
  return points.filter((_, i) => i % stride === 0 || i === points.length - 1)
}
