/** Fields of forms, with visible labels. */
import { fieldText, html, type Html, type Part } from '../../presentation/html.ts'

export interface Field {
  readonly name: string
  readonly label: Part
  readonly value: string
  readonly example?: string
  readonly kind?: 'text' | 'search' | 'number'
  readonly isRequired?: boolean
}

export const field = ({ name, label, value, example = '', kind = 'text', isRequired = false }: Field): Html =>
  html`<label class="field"
    ><span>${label}</span
    ><input
      name="${name}"
      type="${kind}"
      value="${fieldText(value)}"
      placeholder="${example}"
      autocomplete="off"
      autocapitalize="off"
      spellcheck="false"
      ${isRequired ? html` required` : ''}
  /></label>`

interface Choice {
  readonly value: string
  readonly text: string
}

export const choice = (label: string, name: string, value: string, choices: readonly Choice[]): Html =>
  html`<label class="field"
    ><span>${label}</span
    ><select name="${name}">
      ${choices.map(
        (one) => html`<option value="${fieldText(one.value)}" ${one.value === value ? html` selected` : ''}>${one.text}</option>`,
      )}
    </select></label
  >`

/** Values that a form sends without showing them. */
export const hidden = (values: Readonly<Record<string, string | readonly string[] | null | undefined>>): readonly Html[] =>
  Object.entries(values).flatMap(([name, value]) => {
    const all = value === null || value === undefined ? [] : typeof value === 'string' ? [value] : value
    return all.map((one) => html`<input type="hidden" name="${name}" value="${fieldText(one)}" />`)
  })
