/** Fields of forms, with visible labels. */
import { fieldText, html, type Html, type Part } from '../../presentation/html.ts'
import { localTime, zoneText } from '../../presentation/text.ts'
import type { WallTime } from '../../system/clock.ts'
import type { View } from './view.ts'

export interface Field {
  readonly name: string
  readonly label: Part
  readonly value: string
  readonly example?: string
  readonly kind?: 'text' | 'search' | 'number' | 'datetime-local'
  /** Of a time with seconds, 1; a browser refuses others. */
  readonly step?: number | undefined
  readonly isRequired?: boolean
}

export const field = ({ name, label, value, example = '', kind = 'text', step, isRequired = false }: Field): Html =>
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
      ${step === undefined ? null : html` step="${step}"`}
      ${isRequired ? html` required` : ''}
  /></label>`

interface RangeField extends Pick<Field, 'name' | 'value'> {
  readonly label: string
  /** The instant of `value`; undefined for none, and for an invalid one. */
  readonly at: WallTime | undefined
}

/** An end of a range of times in the zone of the page at that time, which its label names. */
export function rangeField({ now, clock }: Pick<View, 'now' | 'clock'>, { name, label, value, at }: RangeField): Html {
  const local = at === undefined ? value : localTime(at, clock).replace(' ', 'T').replace(/:00$/, '')
  const step = local.length > 'YYYY-MM-DDThh:mm'.length ? 1 : undefined
  return field({ name, label: `${label} (${zoneText(clock.zone(at ?? now).offset)})`, value: local, kind: 'datetime-local', step })
}

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

/** A box whose field is absent from the form unless it is checked. */
export const checkBox = (label: Part, name: string, isChecked: boolean): Html =>
  html`<label class="box"><input type="checkbox" name="${name}" value="yes" ${isChecked ? html` checked` : ''} /> ${label}</label>`

/** Values that a form sends without showing them. */
export const hidden = (values: Readonly<Record<string, string | readonly string[] | null | undefined>>): readonly Html[] =>
  Object.entries(values).flatMap(([name, value]) => {
    const all = value === null || value === undefined ? [] : typeof value === 'string' ? [value] : value
    return all.map((one) => html`<input type="hidden" name="${name}" value="${fieldText(one)}" />`)
  })
