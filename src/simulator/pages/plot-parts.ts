/**
 * Parts of the browser script: series, legend, labels of logarithmic axes, and shaded areas. The page contains the source text of the functions, so
 * the functions use no names from outside.
 */
import type { Area, DrawnPlot } from './plot.ts'

/** Series in the form of Chart.js. Later lines, which have dashes, are drawn over earlier ones. */
export function datasets({ kind, series, stepped }: DrawnPlot, ink: string): object[] {
  return series.map(({ name, points, look }, i) => ({
    label: name,
    data: points.map(([x, y]) => ({ x, y })),
    borderColor: look.colour ?? ink,
    backgroundColor: look.colour ?? ink,
    borderDash: kind === 'line' ? look.dash : [],
    borderWidth: { line: 2, scatter: 1.5, bar: 0 }[kind],
    pointStyle: look.mark,
    pointRadius: kind === 'line' && points.length > 20 ? 0 : 4,
    pointHitRadius: 6,
    stepped: stepped === true ? 'before' : false,
    order: -i,
  }))
}

/** Entries of the legend: a piece of the line with its dashes, or the mark. */
export function legend({ kind, series }: DrawnPlot, ink: string, isVisible: (position: number) => boolean): object[] {
  return series.map(({ name, look }, i) => ({
    text: name,
    datasetIndex: i,
    hidden: !isVisible(i),
    fontColor: ink,
    strokeStyle: look.colour ?? ink,
    fillStyle: look.colour ?? ink,
    lineWidth: 2,
    pointStyle: kind === 'line' ? 'line' : look.mark,
    lineDash: kind === 'line' ? look.dash : [],
  }))
}

/**
 * Labelled values of a logarithmic axis: 1, 2 and 5 of each decade where `gap` pixels are between them, else 1 of each decade, or of every
 * n-th. Both ends when the range has fewer than two of these values.
 */
export function logTicks(min: number, max: number, pixels: number, gap: number): readonly number[] {
  const perDecade = pixels / Math.max(Math.log10(max / min), 0.001)
  const steps = perDecade * Math.log10(2) >= gap ? [1, 2, 5] : [1]
  const stride = Math.max(1, Math.ceil(gap / perDecade))
  const ticks: number[] = []
  for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power++) {
    if (power % stride !== 0) continue
    for (const step of steps) ticks.push(Number((step * 10 ** power).toPrecision(3)))
  }
  const inside = ticks.filter((tick) => tick >= min && tick <= max)
  return inside.length < 2 ? [min, max] : inside
}

/** Members of a chart that the shading uses. */
export interface ShadedChart {
  readonly ctx: {
    fillStyle: string
    globalAlpha: number
    save(): void
    restore(): void
    fillRect(x: number, y: number, width: number, height: number): void
    fillText(text: string, x: number, y: number): void
  }
  readonly chartArea: { readonly left: number; readonly right: number; readonly top: number; readonly bottom: number }
  readonly scales: { readonly x: { getPixelForValue(value: number): number } }
}

/** Shades areas over the whole height of a chart, with their labels at the top, in three rows. */
export function shade({ ctx, chartArea, scales }: ShadedChart, areas: readonly Area[], ink: string): void {
  const { left, right, top, bottom } = chartArea
  ctx.save()
  ctx.fillStyle = ink
  for (const [i, { label, from, to }] of areas.entries()) {
    const begin = Math.max(left, scales.x.getPixelForValue(from))
    const end = Math.min(right, scales.x.getPixelForValue(to))
    ctx.globalAlpha = 0.12
    ctx.fillRect(begin, top, Math.max(1, end - begin), bottom - top)
    ctx.globalAlpha = 1
    ctx.fillText(label, begin + 4, top + 12 + 14 * (i % 3))
  }
  ctx.restore()
}
