/** Every line of the table of addresses in docs/sink.md is correct. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { MINUTE } from '../../../src/system/clock.ts'
import { addressRules, mistypedFault } from '../../../src/testkit/remote/address-rules.ts'
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

test.each<[string, string, string | null]>([
  ['grylist+5m', 'grylist', 'greylist'],
  ['greylist', 'greylist', null],
  ['greylist+soon', 'greylist+soon', null],
  ['slow+1m+2m', 'slow+1m+2m', null],
  ['solw+1m', 'solw', 'slow'],
  ['sloww+1m', 'sloww', 'slow'],
  ['drop+now', 'drop+now', null],
  ['drop-afterdot', 'drop-afterdot', 'drop-after-dot'],
  ['at-dta+554', 'at-dta', 'at-data'],
  ['frist-2+451', 'frist-2', 'first-2'],
  ['first-0+451', 'first-0+451', null],
  ['first-2', 'first-2', null],
  ['first-2+dropp', 'dropp', 'drop'],
  ['650', '650', null],
  ['350+text', '350', null],
])('%s looks like a mistyped fault', (local, word, meant) => {
  expect(mistypedFault(`${local}@any.example`)).toEqual({ word, meant })
})

test('ordinary addresses, and those that request a fault, are no mistyped ones', () => {
  const ordinary = [
    'ann',
    'ann+drop',
    'eve.first-2',
    'paul',
    'bob-2',
    '5500',
    'constructor',
    '',
    'sales',
    'paul+news',
    'first-name+news',
    'no-reply',
    'info+2026',
    'from-us',
  ]
  for (const local of [...ordinary, ...rows.map(({ address }) => address.split('@')[0] ?? '')])
    expect([local, mistypedFault(`${local}@any.example`)]).toEqual([local, null])
})

test('rules of one recipient do not apply to another of the same message', async () => {
  const world = openRemote('', { addresses: true })
  const [[met]] = (await world.deliver([{ to: ['550@any.example', 'ann@any.example', 'full@any.example'] }])) as [[string]]
  expect(met).toBe('delivered, but 550 5.0.0 for 550@any.example, 452 4.2.2 for full@any.example at rcpt')
  expect(world.mails[0]?.recipients).toEqual(['ann@any.example'])
})
