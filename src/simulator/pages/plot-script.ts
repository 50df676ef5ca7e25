/**
 * Browser script: turns the plots of a page into charts, and redraws them when the colour scheme changes. The page contains the
 * source text of the function, so the function uses no names from outside.
 */
import type { datasets, legend, logTicks, shade, ShadedChart } from './plot-parts.ts'
import type { DrawnPlot } from './plot.ts'

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

/** Axis of a chart while its labels are chosen. */
interface Scale {
  readonly axis: string
  readonly min: number
  readonly max: number
  readonly chart: { readonly width: number; readonly height: number }
  ticks: readonly { readonly value: number }[]
}
interface VisibleDatasets {
  isDatasetVisible(position: number): boolean
}
interface Parts {
  readonly datasets: typeof datasets
  readonly legend: typeof legend
  readonly logTicks: typeof logTicks
  readonly shade: typeof shade
}

export function drawPlots(browser: Browser, Chart: ChartConstructor, parts: Parts, plots: readonly DrawnPlot[]): void {
  const short = (value: number): string => String(Number(value.toPrecision(3)))

  const labelDecades = (scale: Scale): void => {
    const [pixels, gap] = scale.axis === 'x' ? [scale.chart.width - 70, 40] : [scale.chart.height - 90, 20]
    scale.ticks = parts.logTicks(scale.min, scale.max, pixels, gap).map((value) => ({ value }))
  }

  const draw = (plot: DrawnPlot, i: number): Drawn => {
    const style = browser.getComputedStyle(browser.document.documentElement)
    const ink = style.getPropertyValue('--ink')
    const faint = style.getPropertyValue('--faint')
    const look = { grid: { color: faint }, ticks: { color: ink, maxTicksLimit: 12 } }
    const axis = ({ title, scale, labels }: DrawnPlot['x']): object => {
      const named = { ...look, title: { display: title !== '', text: title, color: ink } }
      const ticks = { ...look.ticks, callback: (value: number) => short(value) }
      if (scale === 'logarithmic') return { ...named, type: scale, ticks: { ...ticks, autoSkip: false }, afterBuildTicks: labelDecades }
      if (labels === undefined) return { ...named, type: scale, ticks }
      if (plot.kind === 'bar') return { ...named, type: 'category', labels }
      // Row names beside the marks, with a margin of one row. The first row is at the top.
      const callback = (value: number): string => labels[value] ?? ''
      return { ...named, type: 'linear', min: -1, max: labels.length, reverse: true, ticks: { ...look.ticks, stepSize: 1, callback } }
    }
    const generateLabels = (chart: VisibleDatasets): object[] => parts.legend(plot, ink, (at) => chart.isDatasetVisible(at))
    const labels = { usePointStyle: true, generateLabels, ...(plot.kind === 'line' ? { pointStyleWidth: 40 } : {}) }
    return new Chart(browser.document.getElementById(`plot-${i}`), {
      type: plot.kind,
      data: { datasets: parts.datasets(plot, ink) },
      plugins: [{ id: 'shade', beforeDatasetsDraw: (chart: ShadedChart) => parts.shade(chart, plot.shaded ?? [], ink) }],
      options: {
        animation: false,
        maintainAspectRatio: false,
        color: ink,
        scales: { x: axis(plot.x), y: axis(plot.y) },
        plugins: { legend: { display: plot.series.length > 1, labels } },
      },
    })
  }

  let drawn: readonly Drawn[] = plots.map(draw)
  browser.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const chart of drawn) chart.destroy()
    drawn = plots.map(draw)
  })
}
