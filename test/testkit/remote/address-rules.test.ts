/** Every line of the table of addresses in docs/sink.md is correct. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { MINUTE } from '../../../src/system/clock.ts'
import { addressRules } from '../../../src/testkit/remote/address-rules.ts'
import { openRemote } from '../../support/remote-harness.ts'
import { inWords } from '../../support/probe-commands.ts'

const PAGE = readFileSync(new URL('../../../docs/sink.md', import.meta.url), 'utf8')

const rows = [...PAGE.matchAll(/^\| `(\S+@\S+)` \| (.*) \| (.*) \|$/gm)].map(([, address = '', , meets = '']) => ({ address, meets }))

test('the table is in the page', () => {
  expect(rows.length).toBeGreaterThan(25)
})

test.each(rows)('$address', async ({ address, meets }) => {
  const world = openRemote('', { addresses: true })
  const rounds = await world.deliver([{ to: [address] }], [0, 5 * MINUTE, 10 * MINUTE])
  expect(inWords(rounds, world.mails.length)).toBe(meets)
})

test('an address without a known rule is accepted', () => {
  for (const local of ['5500', '350', 'first-0+451', 'first-2', 'greylist', 'greylist+soon', 'slow+1m+2m', 'drop+now', 'constructor', '']) {
    expect(addressRules(`${local}@any.example`)).toEqual([])
  }
})

test('rules of one recipient do not apply to another of the same message', async () => {
  const world = openRemote('', { addresses: true })
  const [[met]] = (await world.deliver([{ to: ['550@any.example', 'ann@any.example', 'full@any.example'] }])) as [[string]]
  expect(met).toBe('delivered, but 550 5.0.0 for 550@any.example, 452 4.2.2 for full@any.example at rcpt')
  expect(world.mails[0]?.recipients).toEqual(['ann@any.example'])
})
