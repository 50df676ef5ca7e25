/**
 * HTML from template strings. Every interpolated text is escaped, so that text from the network stays text; only the result of
 * `html` is inserted as it is, and the compiler refuses any other object.
 */
import { escapeControls } from '../mail/smtp-reply.ts'

declare const brand: unique symbol

/** Markup whose texts have been escaped. Only this file creates it. */
export interface Html {
  readonly [brand]: true
  readonly markup: string
}

/** A value that a template may contain. Null, undefined and false insert nothing; a list inserts its members in order. */
export type Part = Html | string | number | null | undefined | false | readonly Part[]

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

const escaped = (text: string): string => text.replace(/[&<>"']/g, (letter) => ENTITIES[letter] ?? '')

const made = (markup: string): Html => ({ markup }) as unknown as Html

/**
 * Writes control characters, and characters that change the order of text or are invisible, as in JSON: `\u202e`. Line ends and
 * tabs stay.
 */
const visible = (text: string): string =>
  text
    .split(/([\n\t])/)
    .map((part, i) => (i % 2 === 1 ? part : escapeControls(part)))
    .join('')

function isList(part: Part): part is readonly Part[] {
  return Array.isArray(part)
}

function markupOf(part: Part): string {
  if (part === null || part === undefined || part === false) return ''
  if (typeof part === 'string') return escaped(visible(part))
  if (typeof part === 'number') return String(part)
  return isList(part) ? part.map(markupOf).join('') : part.markup
}

/** Creates markup from a template. Interpolated texts are escaped for element content and for quoted attribute values. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return made(strings.map((text, i) => text + markupOf(parts[i])).join(''))
}

/**
 * The exact text of a form field, with its control characters, for a quoted attribute value. The browser sends it back
 * unchanged, except for line ends.
 */
export const fieldText = (text: string): Html =>
  made(escaped(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `&#${character.codePointAt(0) ?? 0};`))

/** Separates list members, by `, ` unless another separator is given. */
export const joined = (parts: readonly Part[], separator: Part = ', '): readonly Part[] =>
  parts.flatMap((part, i) => (i === 0 ? [part] : [separator, part]))
