/** Fair shares, their keys and their weights: every mistake is refused, all at once. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/values/problem.ts'
import { openShareWeights, ShareWeights } from '../../src/queue/intake/share-weights.ts'

function problemsOf(values: Readonly<Record<string, unknown>>): readonly string[] {
  try {
    configFrom(values, 'relay.example')
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ text }) => text)
  }
}

const configOf = (values: Readonly<Record<string, unknown>>) => configFrom(values, 'relay.example').config
const ALLOWING = { class: { normal: { weight: 1, allow: ['10.0.0.0/8'] } } }

test('without fair_share there are no weights', () => {
  const config = configOf({})
  expect([config.fair_share, ShareWeights.of(config, openShareWeights(config).table)]).toEqual([false, null])
})

test('a key may be a header field, alone or before others', () => {
  for (const key of ['header:X-Tenant', 'header:X-Tenant, login, client'])
    expect(configOf({ ...ALLOWING, share_key: key }).share_key).toEqual(key.split(', '))
})

test('wrong keys, weights and combinations are refused at once', () => {
  expect(
    problemsOf({
      fair_share: 'often',
      share_key: 'header:X-Tenant',
      share_weight_maps: { 'a.example': '0', 'b.example': 'heavy', 'c.example': '1001' },
      colour: 'red',
    }),
  ).toEqual([
    expect.stringContaining('colour'),
    expect.stringContaining('fair_share: expected'),
    expect.stringContaining('share_key: header:X-Tenant counts for clients that the allow of a class names, and none does'),
    expect.stringContaining('share_weight_maps: "0", "heavy", "1001" are not weights of shares; write whole numbers from 1 to 1000'),
  ])
  expect(problemsOf({ fair_share: 'yes', share_weight_maps: { 'a.example': '0' }, share_key: 'tenant' })).toEqual([
    expect.stringContaining('share_key: expected one or more of login, token, sender_domain, client, or header:NAME'),
    expect.stringContaining('share_weight_maps: "0" is not the weight of a share; write a whole number from 1 to 1000'),
  ])
  for (const wrong of ['0', '1001', '1.5', 'heavy', '', '-1'])
    expect(problemsOf({ fair_share: 'yes', share_weight_maps: { a: wrong } })).toEqual([
      expect.stringContaining('is not the weight of a share'),
    ])
  expect(problemsOf({ share_weight_maps: { 'a.example': '3' } })).toEqual([
    expect.stringContaining('share_weight_maps: fair_share is no, so that weights have no effect'),
  ])
  expect(problemsOf({ ...ALLOWING, share_key: 'header:X-Tenant', smtpd_future_release_message_limit: 5 })).toEqual([
    expect.stringContaining('share_key: smtpd_future_release_message_limit counts held messages'),
  ])
})

test('weights are those of the tables, in any case of the key; other shares have weight 1', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'deferd-shares-')), 'weights')
  writeFileSync(file, 'shop.example 3\nbad.example many\n')
  const config = configOf({
    fair_share: 'yes',
    share_weight_maps: [{ 'App@us.example': '7' }, `texthash:${file}`, 'regexp:{{/^token:/ 20}}'],
  })
  const { table, warnings } = openShareWeights(config)
  const weights = ShareWeights.of(config, table)
  expect(
    ['app@us.example', 'APP@us.example', 'shop.example', 'bad.example', 'token:x', ''].map((share) => weights?.weightOf(share)),
  ).toEqual([7, 7, 3, 1, 20, 1])
  expect(warnings).toEqual([
    `share_weight_maps: ${file}, bad.example: "many" is not the weight of a share; write a whole number from 1 to 1000; the share has weight 1`,
  ])
})

test('a pattern with a weight that cannot be used is refused', () => {
  const config = configOf({ fair_share: 'yes', share_weight_maps: 'regexp:{{/^token:/ 0}}' })
  expect(() => openShareWeights(config)).toThrow(/share_weight_maps.*"0" is not the weight of a share/)
})
