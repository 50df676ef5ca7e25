/** Fields of forms, with visible labels, and the messages about them. */
import { fieldText, html, type Html } from '../../presentation/html.ts'
import { asSentence, localTime, zoneText } from '../../presentation/text.ts'
import type { WallTime } from '../../system/clock.ts'
import { breakable } from './long-words.ts'
import type { View } from './view.ts'

/** A part of a form that a message can name. */
export interface Labelled {
  /** Of the parameter or the member that it sets. */
  readonly name: string
  readonly label: string
}

export interface FormField extends Html, Labelled {}

/** Mistake in a form: a sentence, or the field with this name, and what was expected there. */
export type FormProblem = string | { readonly name: string; readonly detail: string }

/** A label without its hint: `Sender domain` of `Sender domain, or * for all`. */
const shortLabel = (label: string): string => label.replace(/(?:,| \().*$/, '')

const labelled = (part: Html, { name, label }: Labelled): FormField => ({ ...part, name, label: shortLabel(label) })

/** A text in quotes, or the name of a member with the option of a command for it: `allow_private (--allow-private)`. */
const QUOTED_OR_NAME = /"(?:[^"\\]|\\.)*"|\b([a-z]+(?:_[a-z]+)+)\b(?: \(--[a-z-]+\))?/g

/** The sentence about a problem of a form. Fields have their labels in it, in place of the names that the API and commands have for them. */
export function problemText(fields: readonly Labelled[], problem: FormProblem): string {
  if (typeof problem === 'string') return problem
  const labelOf = (wanted: string): string | undefined => fields.find(({ name }) => name === wanted)?.label
  const label = labelOf(problem.name) ?? problem.name.replaceAll('_', ' ')
  const detail = problem.detail.replace(QUOTED_OR_NAME, (whole, name: string | undefined) => {
    const other = name === undefined ? undefined : labelOf(name)
    return other === undefined ? whole : `“${other}”`
  })
  return asSentence(`${label === '' ? '' : `${label}: `}${detail}.`)
}

export interface Field {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly example?: string
  readonly kind?: 'text' | 'search' | 'number' | 'datetime-local'
  /** Of a time with seconds, 1; a browser refuses others. */
  readonly step?: number | undefined
  /** Characters that a browser takes. */
  readonly longest?: number
  readonly isRequired?: boolean
}

export const field = ({ name, label, value, example = '', kind = 'text', step, longest, isRequired = false }: Field): FormField =>
  labelled(
    html`<label class="field"
      ><span>${breakable(label)}</span
      ><input
        name="${name}"
        type="${kind}"
        value="${fieldText(value)}"
        placeholder="${example}"
        autocomplete="off"
        autocapitalize="off"
        spellcheck="false"
        ${step === undefined ? null : html` step="${step}"`}
        ${longest === undefined ? null : html` maxlength="${longest}"`}
        ${isRequired ? html` required` : ''}
    /></label>`,
    { name, label },
  )

interface RangeField extends Pick<Field, 'name' | 'value'> {
  readonly label: string
  /** The instant of `value`; undefined for none, and for an invalid one. */
  readonly at: WallTime | undefined
}

/** An end of a range of times in the zone of the page at that time, which its label names. */
export function rangeField({ now, clock }: Pick<View, 'now' | 'clock'>, { name, label, value, at }: RangeField): FormField {
  const local = at === undefined ? value : localTime(at, clock).replace(' ', 'T').replace(/:00$/, '')
  const step = local.length > 'YYYY-MM-DDThh:mm'.length ? 1 : undefined
  return field({ name, label: `${label} (${zoneText(clock.zone(at ?? now).offset)})`, value: local, kind: 'datetime-local', step })
}

interface Choice {
  readonly value: string
  readonly text: string
}

export const choice = (label: string, name: string, value: string, choices: readonly Choice[]): FormField =>
  labelled(
    html`<label class="field"
      ><span>${label}</span
      ><select name="${name}">
        ${choices.map(
          (one) => html`<option value="${fieldText(one.value)}" ${one.value === value ? html` selected` : ''}>${one.text}</option>`,
        )}
      </select></label
    >`,
    { name, label },
  )

/** A box whose field is absent from the form unless it is checked. */
export const checkBox = (label: string, name: string, isChecked: boolean): FormField =>
  labelled(
    html`<label class="box"><input type="checkbox" name="${name}" value="yes" ${isChecked ? html` checked` : ''} /> ${label}</label>`,
    { name, label },
  )

/** Values that a form sends without showing them. */
export const hidden = (values: Readonly<Record<string, string | readonly string[] | null | undefined>>): readonly Html[] =>
  Object.entries(values).flatMap(([name, value]) => {
    const all = value === null || value === undefined ? [] : typeof value === 'string' ? [value] : value
    return all.map((one) => html`<input type="hidden" name="${name}" value="${fieldText(one)}" />`)
  })
