/**
 * Browser script: turns the plots of a page into charts, and redraws them when the colour scheme changes. The page contains the
 * source text of the function, so the function uses no names from outside.
 */
import type { Plot } from './plot.ts'

/** Browser objects and functions that the script uses. */
interface Browser {
  getComputedStyle(element: unknown): { getPropertyValue(name: string): string }
  matchMedia(query: string): { addEventListener(kind: 'change', listener: () => void): void }
  readonly document: { readonly documentElement: unknown; getElementById(id: string): unknown }
}
interface Drawn {
  destroy(): void
}
type ChartConstructor = new (canvas: unknown, configuration: object) => Drawn

export function drawPlots(browser: Browser, Chart: ChartConstructor, plots: readonly Plot[]): void {
  const colours = ['#2f7ed8', '#e8710a', '#12935a', '#9a5bd0', '#d93645', '#b58900', '#0e9fb3', '#d3549b', '#6b8e23', '#7a7f87']
  const short = (value: number): string => String(Number(value.toPrecision(3)))

  const datasets = (plot: Plot): object[] =>
    plot.series.map((series, i) => ({
      label: series.name,
      data: series.points.map(([x, y]) => ({ x, y })),
      borderColor: colours[i % colours.length],
      backgroundColor: colours[i % colours.length],
      borderWidth: plot.kind === 'bar' ? 0 : 1.8,
      pointRadius: plot.kind === 'line' && series.points.length > 20 ? 0 : 3.5,
      pointHitRadius: 6,
      stepped: plot.stepped === true ? 'before' : false,
    }))

  const draw = (plot: Plot, i: number): Drawn => {
    const style = browser.getComputedStyle(browser.document.documentElement)
    const ink = style.getPropertyValue('--ink')
    const faint = style.getPropertyValue('--faint')
    const look = { grid: { color: faint }, ticks: { color: ink, maxTicksLimit: 12 } }
    const axis = ({ title, scale, labels }: Plot['x']): object => {
      const named = { ...look, title: { display: title !== '', text: title, color: ink } }
      if (labels === undefined) return { ...named, type: scale, ticks: { ...look.ticks, callback: (value: number) => short(value) } }
      if (plot.kind === 'bar') return { ...named, type: 'category', labels }
      // Row names beside the marks, with a margin of one row. The first row is at the top.
      const callback = (value: number): string => labels[value] ?? ''
      return { ...named, type: 'linear', min: -1, max: labels.length, reverse: true, ticks: { ...look.ticks, stepSize: 1, callback } }
    }
    return new Chart(browser.document.getElementById(`plot-${i}`), {
      type: plot.kind,
      data: { datasets: datasets(plot) },
      options: {
        animation: false,
        maintainAspectRatio: false,
        color: ink,
        scales: { x: axis(plot.x), y: axis(plot.y) },
        plugins: { legend: { display: plot.series.length > 1, labels: { color: ink, boxWidth: 12 } } },
      },
    })
  }

  let drawn: readonly Drawn[] = plots.map(draw)
  browser.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const chart of drawn) chart.destroy()
    drawn = plots.map(draw)
  })
}
