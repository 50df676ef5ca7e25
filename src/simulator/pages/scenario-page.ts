/** Page of a scenario: queued, delivered and failed mail by destination. */
import type { Page } from './page.ts'
import { plural } from '../../presentation/text.ts'
import type { Plot } from '../../presentation/plots/plot.ts'
import { curvesOf, totalsOf, type Curves } from '../scenario/scenario-figures.ts'
import type { ScenarioResult } from '../scenario/scenario-record.ts'

const STEPS = 240
/** Maximum number of lines in a plot, so that the lines remain distinguishable. */
const MOST_LINES = 10

export function scenarioPage(result: ScenarioResult, name: string, table: Page['table'], command: string): Page {
  const { destinations, ended, outages } = result
  const shaded = outages.map(({ label, from, until }) => ({ label, from, to: until }))
  const shown = destinations.slice(0, MOST_LINES).map((record) => ({ name: record.destination, curves: curvesOf(record, ended, STEPS) }))
  const plot = (title: string, about: string, unit: string, values: (curves: Curves) => readonly number[]): Plot => ({
    title,
    about,
    kind: 'line',
    x: { title: 'time', scale: 'linear', values: 'durations' },
    y: { title: unit, scale: 'linear' },
    shaded,
    series: shown.map(({ name: destination, curves }) => ({
      name: destination,
      points: values(curves).map((y, i) => [Math.round(curves.times[i] ?? 0), y] as const),
    })),
  })
  const { messages, recipients } = totalsOf(destinations)
  const step = `${Number((ended / STEPS / 1000).toPrecision(3))} s`
  return {
    title: name,
    about: `${plural(messages, 'message')} to ${plural(recipients, 'recipient')}.`,
    command,
    table,
    plots: [
      plot('In the queue', 'Recipients waiting or in delivery.', 'recipients', ({ waiting }) => waiting),
      plot('Delivered', `Deliveries in steps of ${step}.`, 'deliveries', ({ delivered }) => delivered),
      plot(
        'Failed attempts',
        `Attempts without delivery in steps of ${step}: the load on the servers.`,
        'attempts',
        ({ failed }) => failed,
      ),
      plot(
        'Windows',
        'Deliveries allowed at once; 0 while the destination is dead and only probed.',
        'deliveries at once',
        ({ window }) => window,
      ),
    ],
  }
}
