/**
 * Tables. Up to 64rem the reply of a row has a line of its own; on a phone each row becomes a card, whose values have the headings of
 * their columns as labels. The roles keep the table a table for screen readers there.
 */
import { html, type Html, type Part } from '../../presentation/html.ts'
import { renewed } from './renewed.ts'

export interface Column<Row> {
  readonly heading: Part
  /** Label on a card; the heading when absent, none when empty. */
  readonly label?: string
  readonly cell: (row: Row) => Part
  readonly kind?: 'number' | 'text' | 'code' | 'check' | 'actions' | 'parties' | 'reply'
  /** True for the column that names the row. */
  readonly isTitle?: true
}

interface TableOptions<Row> {
  /** Caption for screen readers; the visible heading stands above the table. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly tone?: (row: Row) => string
  /** Shown instead of a table without rows. */
  readonly empty: Part
  readonly kind?: string
  /**
   * Name of a row, by which the script finds it in a newer print of the screen and renews it in its place; absent for a table that stays as it
   * is. The columns of a table with it do not depend on its rows.
   */
  readonly renewedBy?: (row: Row) => string
}

function labelOf<Row>({ heading, label }: Column<Row>): string {
  return label ?? (typeof heading === 'string' ? heading : '')
}

function cellOf<Row>(column: Column<Row>, row: Row): Html {
  const { kind = 'text', isTitle, cell } = column
  return isTitle === true
    ? html`<th scope="row" role="rowheader" class="${kind}">${cell(row)}</th>`
    : html`<td role="cell" class="${kind}" data-label="${labelOf(column)}">${cell(row)}</td>`
}

export function table<Row>({ caption, columns, rows, tone, empty, kind = '', renewedBy }: TableOptions<Row>): Html {
  if (rows.length === 0) return html`<div class="empty">${empty}</div>`
  const beside = columns.filter(({ kind: cellKind }) => cellKind !== 'reply').length
  return html`<div class="wide">
    <table role="table" class="cards ${beside < columns.length ? `two-lines beside-${beside} ` : ''}${kind}">
      <caption class="unseen">
        ${caption}
      </caption>
      <thead role="rowgroup">
        <tr role="row">
          ${columns.map(
            ({ heading, kind: cellKind = 'text' }) => html`<th scope="col" role="columnheader" class="${cellKind}">${heading}</th>`,
          )}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(
          (row) =>
            html`<tr role="row" class="${tone?.(row) ?? ''}" ${renewedBy === undefined ? null : renewed(`${kind} ${renewedBy(row)}`)}>
              ${columns.map((column) => cellOf(column, row))}
            </tr> `,
        )}
      </tbody>
    </table>
  </div>`
}

/** A name and its value; `wide` for a long text, which takes a line of its own. */
export type Fact = readonly [name: string, value: Part, width?: 'wide' | undefined]

/** A list of names and values, which is renewed by its name when it has one. Facts without a value are left out. */
export const facts = (pairs: readonly Fact[], renewedBy: string | null = null): Html =>
  html`<dl class="facts" ${renewedBy === null ? null : renewed(renewedBy)}>
    ${pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')
      .map(
        ([name, value, width]) =>
          html`<div${width === undefined ? null : html` class="wide-fact"`}><dt>${name}</dt><dd>${value}</dd></div>`,
      )}
  </dl>`
