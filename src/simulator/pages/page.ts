/** An HTML page of plots and tables in one file. It has no script and loads nothing; it follows the light or dark mode of the browser. */
import { html, type Html } from '../../presentation/html.ts'
import type { Plot } from '../../presentation/plots/plot.ts'
import { lookOf } from '../../presentation/plots/series-look.ts'
import { PLOT_STYLE, svgPlot } from '../../presentation/plots/svg-plot.ts'

export interface Page {
  readonly title: string
  readonly about: string
  readonly plots: readonly Plot[]
  readonly table: { readonly headings: readonly string[]; readonly rows: readonly (readonly string[])[] }
  /** Command that creates the page again. */
  readonly command: string
}

const STYLE = `
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2430; --faint: #d9dee5 }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #d7dde6; --faint: #323a46 } }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin: 2rem 0 0 } p { margin: .3rem 0 .8rem }
.wide-table { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } th, td { padding: .25rem .8rem .25rem 0; text-align: left; border-bottom: 1px solid var(--faint); white-space: nowrap }
code { font-size: .9em; overflow-wrap: anywhere }
${PLOT_STYLE}`

/** The plots with their captions. A name has the same look in all plots of the page. */
function sections(plots: readonly Plot[]): readonly Html[] {
  const names = [...new Set(plots.flatMap(({ series }) => series.map(({ name }) => name)))]
  return plots.map((plot) => {
    const looks = plot.series.map(({ name }) => lookOf(names.indexOf(name)))
    return html`<section>
      <h2>${plot.title}</h2>
      <p>${plot.about}</p>
      ${svgPlot(plot, { looks })}
    </section>`
  })
}

const headings = (row: readonly string[]): Html =>
  html`<tr>
    ${row.map((cell) => (cell === '' ? html`<td></td>` : html`<th scope="col">${cell}</th>`))}
  </tr>`

const cells = ([first = '', ...others]: readonly string[]): Html =>
  html`<tr>
    <th scope="row">${first}</th>
    ${others.map((cell) => html`<td>${cell}</td>`)}
  </tr>`

export function renderPage({ title, about, plots, table, command }: Page): string {
  const body = html`<h1>${title}</h1>
    <p>${about}</p>
    <div class="wide-table" tabindex="0" role="group" aria-label="Figures">
      <table>
        <thead>
          ${headings(table.headings)}
        </thead>
        <tbody>
          ${table.rows.map(cells)}
        </tbody>
      </table>
    </div>
    ${sections(plots)}
    <p>Made by <code>${command}</code>.</p>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
${html`<title>${title}</title>`.markup}
<style>${STYLE}</style>
</head>
<body>
<main>
${body.markup}
</main>
</body>
</html>
`
}
