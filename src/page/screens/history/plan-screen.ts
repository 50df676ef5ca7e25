/** The plan of an operation on mail that has left the queue, with the form that starts the operation. Nothing has changed yet. */
import { html, type Part } from '../../../presentation/html.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { hidden } from '../../markup/fields.ts'
import type { Screen } from '../../markup/frame.ts'
import { linkTo } from '../../markup/links.ts'
import type { View } from '../../markup/view.ts'

/** The selection, as the query of the screen has it: one queue id, or conditions. */
export type HistoryFields = Readonly<Record<string, string>>

export interface PlanParts {
  readonly title: string
  readonly about: Part
  /** Text of the button that starts the operation; null when there is nothing to do. */
  readonly button: string | null
  /** Class of the button: what it starts can be made good, or is lost for ever. */
  readonly kind: 'primary' | 'danger'
}

interface PlanFacts {
  readonly operation: 'erase' | 'resend'
  readonly fields: HistoryFields
  /** Body of the request of the API. */
  readonly body: object
  /** Idempotency key of the form. */
  readonly key: string
  /** Path below the root to which the operator returns. */
  readonly back: string
}

const wordsOf = (operation: PlanFacts['operation'], { id, ...conditions }: HistoryFields): readonly string[] => [
  'history',
  operation,
  ...(id === undefined ? Object.entries(conditions).map(([name, value]) => `--${name.replaceAll('_', '-')}=${value}`) : [id]),
]

export function historyPlanScreen(view: View, { title, about, button, kind }: PlanParts, shown: PlanFacts): Screen {
  const { operation, fields, body, key, back } = shown
  return {
    title,
    place: 'history',
    main: html`<div class="panel" data-panel>
      <h1>${title}</h1>
      ${about}
      ${
        button === null
          ? html`<p class="buttons"><a class="button" href="${linkTo(view, back)}" data-close>Back</a></p>`
          : html`<form method="post" action="${linkTo(view, `history/${operation}`)}">
              ${hidden({ ...fields, key, back })}
              <label class="field"
                ><span>Reason (optional, for the audit log)</span><input name="reason" maxlength="200" autocomplete="off"
              /></label>
              <p class="buttons">
                <button type="submit" class="${kind}">${button}</button>
                <a class="button" href="${linkTo(view, back)}" data-close>Cancel</a>
              </p>
            </form>`
      }
      ${asCommand(wordsOf(operation, fields), { method: 'POST', path: `api/v1/history/${operation}`, body })}
    </div>`,
  }
}
