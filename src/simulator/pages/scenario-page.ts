/** Page of a scenario: queued, delivered and failed mail by destination, and by share. */
import type { Page } from './page.ts'
import { plural } from '../../presentation/text.ts'
import type { Plot } from '../../presentation/plots/plot.ts'
import { curvesOf, shareName, totalsOf, type Curves } from '../scenario/scenario-figures.ts'
import type { ScenarioResult } from '../scenario/scenario-record.ts'

const STEPS = 240
/** Maximum number of lines in a plot, so that the lines remain distinguishable. */
const MOST_LINES = 10

export function scenarioPage(result: ScenarioResult, name: string, table: Page['table'], command: string): Page {
  const { destinations, shares, ended, outages } = result
  const shaded = outages.map(({ label, from, until }) => ({ label, from, to: until }))
  const shown = destinations.slice(0, MOST_LINES).map((record) => ({ name: record.destination, curves: curvesOf(record, ended, STEPS) }))
  const shownShares = shares.slice(0, MOST_LINES).map((record) => ({ name: shareName(record), curves: curvesOf(record, ended, STEPS) }))
  const plot = (
    { title, about, unit }: { readonly title: string; readonly about: string; readonly unit: string },
    values: (curves: Curves) => readonly number[],
    lines = shown,
  ): Plot => ({
    title,
    about,
    kind: 'line',
    x: { title: 'time', scale: 'linear', values: 'durations' },
    y: { title: unit, scale: 'linear' },
    shaded,
    series: lines.map(({ name: line, curves }) => ({
      name: line,
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
      plot({ title: 'In the queue', about: 'Recipients waiting or in delivery.', unit: 'recipients' }, ({ waiting }) => waiting),
      plot({ title: 'Delivered', about: `Deliveries in steps of ${step}.`, unit: 'deliveries' }, ({ delivered }) => delivered),
      ...(shares.length === 0
        ? []
        : [
            plot(
              { title: 'In the queue, by share', about: 'Recipients waiting or in delivery of each share.', unit: 'recipients' },
              ({ waiting }) => waiting,
              shownShares,
            ),
            plot(
              { title: 'Delivered, by share', about: `Deliveries of each share in steps of ${step}.`, unit: 'deliveries' },
              ({ delivered }) => delivered,
              shownShares,
            ),
          ]),
      plot(
        { title: 'Failed attempts', about: `Attempts without delivery in steps of ${step}: the load on the servers.`, unit: 'attempts' },
        ({ failed }) => failed,
      ),
      plot(
        {
          title: 'Windows',
          about: 'Deliveries allowed at once; 0 while the destination is dead and only probed.',
          unit: 'deliveries at once',
        },
        ({ window }) => window,
      ),
    ],
  }
}
