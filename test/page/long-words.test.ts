/** The places at which long words may be broken: no text is lost, and short words stay whole. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { html } from '../../src/presentation/html.ts'
import { breakable } from '../../src/page/markup/long-words.ts'

const PLACE = '<wbr aria-hidden="true" />'

test('an address is broken before its domain and behind signs', () => {
  expect(breakable('bounces+customer=far.example@shop.example').markup).toBe(
    ['bounces+', 'customer=far.', 'example', '@shop.example'].join(PLACE),
  )
  expect(breakable('short@far.example').markup).toBe(`short${PLACE}@far.example`)
  expect(breakable('ann@far.example').markup).toBe('ann@far.example')
  expect(breakable('smtp:[192.0.2.100]:2525').markup).toBe(['smtp:', '[192.0.2.100]:', '2525'].join(PLACE))
  expect(breakable('x'.repeat(40)).markup).toBe(['x'.repeat(15), 'x'.repeat(15), 'x'.repeat(10)].join(PLACE))
})

test('no character of any text is lost, and each part is short', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 80 }), (text) => {
      const { markup } = breakable(text)
      expect(markup.replaceAll(PLACE, '')).toBe(html`${text}`.markup)
    }),
  )
})
