/** Every line of the table of addresses is true. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { MINUTE } from '../../src/mail/clock.ts'
import { addressRules } from '../../src/testkit/far-side/address-rules.ts'
import { farWorld } from '../support/far-world.ts'
import { inWords } from '../support/probe-words.ts'

const PAGE = readFileSync(new URL('../../docs/sink.md', import.meta.url), 'utf8')

const rows = [...PAGE.matchAll(/^\| `(\S+@\S+)` \| (.*) \| (.*) \|$/gm)].map(([, address = '', , meets = '']) => ({ address, meets }))

test('the table is there', () => {
  expect(rows.length).toBeGreaterThan(25)
})

test.each(rows)('$address', async ({ address, meets }) => {
  const world = farWorld('', { addresses: true })
  const rounds = await world.deliver([{ to: [address] }], [0, 5 * MINUTE, 10 * MINUTE])
  expect(inWords(rounds, world.mails.length)).toBe(meets)
})

test('an address that cannot be read is one like any other', () => {
  for (const local of ['5500', '350', 'first-0+451', 'first-2', 'greylist', 'greylist+soon', 'slow+1m+2m', 'drop+now', 'constructor', '']) {
    expect(addressRules(`${local}@any.example`)).toEqual([])
  }
})

test('wishes of one recipient are not those of another in the same mail', async () => {
  const world = farWorld('', { addresses: true })
  const [[met]] = (await world.deliver([{ to: ['550@any.example', 'ann@any.example', 'full@any.example'] }])) as [[string]]
  expect(met).toBe('delivered, but 550 5.0.0 for 550@any.example, 452 4.2.2 for full@any.example at rcpt')
  expect(world.mails[0]?.recipients).toEqual(['ann@any.example'])
})
