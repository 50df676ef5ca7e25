/**
 * Small drawings as inline SVG: bars, and the strip of the last outcomes. Everything that they show is also text: in a
 * label for screen readers, or beside them.
 */
import { html, type Html } from '../../presentation/html.ts'

const rounded = (value: number): number => Math.round(value * 10) / 10

/** A horizontal bar for a share between 0 and 1, behind the number that it stands for. */
export function bar(share: number, tone = ''): Html {
  const width = share <= 0 ? 0 : Math.max(1, rounded(100 * Math.min(1, share)))
  return html`<svg class="bar ${tone}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
    <rect width="${width}" height="6" />
  </svg>`
}

/** Height of an outcome in the strip, so that the outcomes differ without colour: delivered is highest. */
const HEIGHTS: Readonly<Record<string, number>> = { delivered: 14, deferred: 8, bounced: 4, expired: 4 }

/** The last outcomes, oldest first: a high bar for delivered, a middle one for deferred, a low one for bounced. */
export function outcomeStrip(outcomes: readonly string[], shown: number): Html {
  const last = outcomes.slice(-shown)
  const counted = [...Map.groupBy(last, (outcome) => outcome)].map(([outcome, those]) => `${those.length} ${outcome}`)
  const label = last.length === 0 ? 'no attempts yet' : `last ${last.length} outcomes: ${counted.join(', ')}`
  return html`<svg class="outcomes" viewBox="0 0 ${shown * 5} 16" width="${shown * 5}" height="16" role="img" aria-label="${label}">
    <title>${label}</title>
    ${last.map((outcome, i) => {
      const height = HEIGHTS[outcome] ?? 4
      return html`<rect class="${outcome}" x="${(shown - last.length + i) * 5}" y="${15 - height}" width="4" height="${height}" />`
    })}
  </svg>`
}
