/**
 * An HTML page of plots and tables in one file. It contains the plotting library (Chart.js) and loads nothing. It supports light
 * and dark mode; its tables are readable without scripts.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { lookOf } from './plot-look.ts'
import * as parts from './plot-parts.ts'
import { drawPlots } from './plot-script.ts'
import type { DrawnPlot, Plot } from './plot.ts'

export interface Page {
  readonly title: string
  readonly about: string
  readonly plots: readonly Plot[]
  readonly table: { readonly headings: readonly string[]; readonly rows: readonly (readonly string[])[] }
  /** Command that creates the page again. */
  readonly command: string
}

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (letter) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[letter] ?? '&#39;')

/** JSON for a script element, without characters that could end it. */
const embedded = (value: unknown): string =>
  JSON.stringify(value).replace(/[<\u2028\u2029]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)

const STYLE = `
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2430; --faint: #d9dee5 }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #d7dde6; --faint: #323a46 } }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin: 2rem 0 0 } p { margin: .3rem 0 .8rem }
.plot { position: relative; height: 22rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } th, td { padding: .25rem .8rem .25rem 0; text-align: left; border-bottom: 1px solid var(--faint); white-space: nowrap }
code { font-size: .9em }
`

/** Browser build of the installed Chart.js. */
function chartLibrary(): string {
  const entry = createRequire(import.meta.url).resolve('chart.js')
  return readFileSync(join(dirname(entry), 'chart.umd.min.js'), 'utf8').replace(/\n\/\/# sourceMappingURL=.*/, '')
}

/** The functions of plot-parts.ts, as the source text of an object. */
const PARTS = `{ ${Object.entries(parts)
  .map(([name, part]) => `${name}: ${part.toString()}`)
  .join(',\n')} }`

/** Plots with the looks of their series. A name has the same look in all plots of the page. */
function drawn(plots: readonly Plot[]): readonly DrawnPlot[] {
  const names = [...new Set(plots.flatMap(({ series }) => series.map(({ name }) => name)))]
  return plots.map((plot) => ({ ...plot, series: plot.series.map((one) => ({ ...one, look: lookOf(names.indexOf(one.name)) })) }))
}

const figure = ({ title, about }: Plot, i: number): string =>
  `<section><h2>${escaped(title)}</h2><p>${escaped(about)}</p><div class="plot"><canvas id="plot-${i}" role="img" aria-label="${escaped(`${title}. ${about}`)}"></canvas></div></section>`

const cells = (kind: 'th' | 'td', row: readonly string[]): string =>
  `<tr>${row.map((cell) => `<${kind}>${escaped(cell)}</${kind}>`).join('')}</tr>`

export function renderPage({ title, about, plots, table, command }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escaped(title)}</h1>
<p>${escaped(about)}</p>
<div class="wide"><table>
<thead>${cells('th', table.headings)}</thead>
<tbody>${table.rows.map((row) => cells('td', row)).join('\n')}</tbody>
</table></div>
${plots.map(figure).join('\n')}
<p>Made by <code>${escaped(command)}</code>.</p>
<script>${chartLibrary()}</script>
<script>
(${drawPlots.toString()})(window, Chart, ${PARTS}, ${embedded(drawn(plots))})
</script>
</body>
</html>
`
}
