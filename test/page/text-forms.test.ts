/** The script of the page writes numbers and times as the server does. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import * as browser from '../../src/page/browser/text-forms.js'
import { rate } from '../../src/page/markup/times.ts'
import { connectingText } from '../../src/presentation/delivery-slots.ts'
import { grouped, relative, span } from '../../src/presentation/text.ts'

test('counts, rates, durations and distances are equal', () => {
  fc.assert(
    fc.property(fc.nat(4_000_000_000), fc.integer({ min: -400_000, max: 400_000 }), (count, seconds) => {
      expect(browser.count(count)).toBe(grouped(count))
      const list = Array.from({ length: count % 6 }, (_, n) => ({ address: `192.0.2.${n}`, count: count + n }))
      expect(browser.connecting(list)).toBe(connectingText(list))
      expect(browser.rate(count / 1_000)).toBe(rate(count / 1_000))
      expect(browser.span(count / 7)).toBe(span((count / 7) * 1_000))
      expect(browser.distance(seconds / 3)).toBe(relative((seconds / 3) * 1_000, 0))
    }),
  )
})
