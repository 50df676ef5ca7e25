/** Text from the network stays text in every place of a template. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fieldText, html, joined } from '../../src/presentation/html.ts'

const HOSTILE = ['<script>', '</script>', '"><img onerror=x>', "' onclick='x", '&lt;', '\u202e', '\u001b[2J', '\u0000', 'a\nb']

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...HOSTILE))

/** Decodes the character references that the templates write. */
const decoded = (markup: string): string =>
  markup
    .replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)))
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, '&')

test('no interpolated text opens a tag, ends an attribute or begins a reference', () => {
  fc.assert(
    fc.property(text, (value) => {
      const { markup } = html`${value}`
      expect(markup).not.toMatch(/[<>"']|&(?!(?:amp|lt|gt|quot|#39);)/)
    }),
  )
})

test('no control, bidirectional or invisible character reaches the page, except line ends and tabs', () => {
  fc.assert(
    fc.property(text, (value) => {
      expect(html`${value}`.markup.replace(/[\n\t]/g, '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    }),
  )
  expect(html`${'a\u202eb\u001b'}`.markup).toBe('a\\u202eb\\u001b')
})

test('a form field keeps its exact text', () => {
  fc.assert(
    fc.property(text, (value) => {
      const { markup } = fieldText(value)
      expect(markup).not.toMatch(/[<>"']/)
      expect(decoded(markup)).toBe(value)
    }),
  )
})

test('only the result of a template is inserted as it is', () => {
  expect(html`<p>${html`<b>${'<i>'}</b>`}</p>`.markup).toBe('<p><b>&lt;i&gt;</b></p>')
  expect(html`${null}${undefined}${false}${0}${['a', html`<br />`, 2]}`.markup).toBe('0a<br />2')
  expect(html`${joined(['a', 'b', 'c'], ' · ')}`.markup).toBe('a · b · c')
})
