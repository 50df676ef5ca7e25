/** `deferd queue shares`, without a daemon. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../../../src/store/sqlite/open-store.ts'
import { mail } from '../../conformance/mail.ts'
import { Operator } from '../../support/operator.ts'

let operator: Operator

beforeEach(async () => {
  operator = new Operator()
  const { store, close } = await openStore(operator.directory, { threads: false, create: true })
  for (const [share, count] of [
    ['news.example', 3],
    ['shop.example', 1],
  ] as const)
    for (let n = 0; n < count; n++) await store.enqueue(mail(store, { share }))
  await store.enqueue(mail(store))
  await close()
})
afterEach(() => operator.leave())

function configure(text: string): void {
  const { system } = operator.defaultFiles
  mkdirSync(dirname(system))
  writeFileSync(system, text)
}

const says = (...argv: readonly string[]) => operator.says('queue', 'shares', ...argv)

test('lists the shares with what waits and what they should have, the fullest first', async () => {
  configure('fair_share = "yes"\nshare_weight_maps = { "shop.example" = "3" }\n')
  const heading = 'SHARE +WEIGHT +WAITING +IN FLIGHT +STARTS +WANTED +GOT *\n'
  const rows = ['news\\.example +1 +3 +0 +0 +20\\.0%', '\\(none\\) +1 +1 +0 +0 +20\\.0%', 'shop\\.example +3 +1 +0 +0 +60\\.0%']
  expect(await says()).toMatch(new RegExp(`^${heading}${rows.map((row) => `${row} *\n`).join('')}$`))
  expect(await says('--limit', '1')).toMatch(/\n2 more shares; --limit shows more of them\n$/)
  expect(
    (await says('--json'))
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { key: string }).key),
  ).toEqual(['news.example', '', 'shop.example'])
  expect(await says('--class', 'fast')).toBe('No share has mail.\n')
})

test('has a column for the class when there are classes', async () => {
  configure('fair_share = "yes"\n[class.normal]\nweight = 10\n')
  expect(await says('--limit', '1')).toMatch(/^SHARE +CLASS +WEIGHT +WAITING .*\nnews\.example +normal +1 +3 /)
})

test('says what to set when deliveries are not shared', async () => {
  configure('')
  expect(await says()).toBe('Deliveries are not shared fairly; set fair_share = "yes" for that (docs/classes.md).\n')
  expect(await says('--json')).toBe('')
})
