/** Pages of the contention simulator: the run of each client, and the results of the other models. */
import type { ContentionResult, Sample } from '../contention/contention.ts'
import { MODELS, type ModelName, type ModelResult } from '../contention/models.ts'
import type { Page } from './page.ts'
import { grouped } from '../../presentation/text.ts'
import type { Plot } from '../../presentation/plots/plot.ts'
import { thinned } from '../../presentation/plots/schedule-plots.ts'

interface ClientRun {
  readonly client: string
  readonly result: ContentionResult
}

const rounded = (value: number): number => Number(value.toPrecision(5))

/** States the runs that are longer than the plots; empty without one. */
function cutOff(runs: readonly ClientRun[], until: number): string {
  const longer = runs.filter(({ result }) => result.makespan / 1e6 > until)
  if (longer.length === 0) return ''
  const names = longer.map(({ client, result }) => `${client} goes on to ${grouped(Math.round(result.makespan / 1e6))} s`)
  return ` The plot ends at ${Math.round(until)} s; ${names.join(', ')}.`
}

/** Series up to `until` in seconds. The rest of a longer run is cut off. */
function curves(runs: readonly ClientRun[], until: number, value: (sample: Sample) => number | null): Plot['series'] {
  return runs.flatMap(({ client, result }) => {
    const points = thinned(result.samples.filter(({ time }) => time <= until)).flatMap((sample) => {
      const y = value(sample)
      return y === null ? [] : [[rounded(sample.time), rounded(y)] as const]
    })
    return points.length === 0 ? [] : [{ name: client, points }]
  })
}

export function contentionPage(runs: readonly ClientRun[], requests: number, table: Page['table'], command: string): Page {
  const finished = runs.filter(({ result }) => result.completed === requests).map(({ result }) => result.makespan / 1e6)
  const until = Math.min(120, 1.1 * Math.max(1, ...finished))
  const x = { title: 'seconds', scale: 'linear' } as const
  const ends = cutOff(runs, until)
  const plots: readonly Plot[] = [
    {
      title: 'Work done',
      about: `Requests completed. A line that stays at the bottom is a collapse: the server is busy with refusals.${ends}`,
      kind: 'line',
      x,
      y: { title: 'requests completed', scale: 'linear' },
      series: curves(runs, until, ({ completed }) => completed),
    },
    {
      title: 'Open connections',
      stepped: true,
      about: `Connections at the server, refusals included. A window keeps them near the limit of the server.${ends}`,
      kind: 'line',
      x,
      y: { title: 'connections', scale: 'logarithmic' },
      series: curves(runs, until, ({ busy }) => Math.max(busy, 1)),
    },
    {
      title: 'Windows',
      stepped: true,
      about: `Requests in flight that a client with a window allows.${ends}`,
      kind: 'line',
      x,
      y: { title: 'requests', scale: 'linear' },
      series: curves(runs, until, ({ window }) => window),
    },
    {
      title: 'Attempts',
      about: 'Each request needs one; all others are refusals.',
      kind: 'bar',
      x: { title: 'attempts', scale: 'linear' },
      y: { title: '', scale: 'linear', values: runs.map(({ client }) => client) },
      series: [{ name: 'attempts', points: runs.map(({ result }, i) => [result.attempts, i] as const) }],
    },
  ]
  return {
    title: 'Effects of retries on a server',
    about: `${requests} requests, one each millisecond; a service takes 500 ms, a refusal holds a connection for 50 ms.`,
    command,
    table,
    plots: plots.filter(({ series }) => series.length > 0),
  }
}

const numberOf = (result: ModelResult, member: string): number => rounded(Number(result[member] ?? 0))

export function modelPage(model: ModelName, results: readonly ModelResult[], table: Page['table'], command: string): Page {
  return { title: 'Effects of retries on a server', about: MODELS[model].about, command, table, plots: [modelPlot(model, results)] }
}

function modelPlot(model: ModelName, results: readonly ModelResult[]): Plot {
  const names = [...new Set(results.map(({ client }) => String(client)))]
  const seriesOf = (x: string, y: string): Plot['series'] =>
    names.map((name) => ({
      name,
      points: results.filter(({ client }) => client === name).map((result) => [numberOf(result, x), numberOf(result, y)] as const),
    }))
  switch (model) {
    case 'row':
      return {
        title: 'Calls against time',
        about: 'Nearer to the lower left is better. Without backoff the run is shortest and makes the most calls.',
        kind: 'scatter',
        x: { title: 'seconds', scale: 'logarithmic' },
        y: { title: 'calls', scale: 'linear' },
        series: seriesOf('makespan', 'calls'),
      }
    case 'crash':
      return {
        title: 'Jobs done',
        about: 'Just above 400 clients fixed retries collapse; clients that check before sending do not.',
        kind: 'line',
        x: { title: 'clients', scale: 'linear' },
        y: { title: 'jobs in 300 s', scale: 'linear' },
        series: seriesOf('clients', 'jobs'),
      }
    case 'limit':
      return {
        title: 'Mail deferred',
        about: 'The smaller the step, the fewer deliveries run into the limit.',
        kind: 'bar',
        x: { title: '% deferred', scale: 'linear' },
        y: { title: 'feedback', scale: 'linear', values: results.map(({ client }) => String(client)) },
        series: [{ name: 'deferred', points: results.map((result, i) => [numberOf(result, 'deferred'), i] as const) }],
      }
  }
}
