import { expect, test } from 'vitest'
import { compareRewriting } from './rewriting-comparison.ts'
import { SITUATIONS } from './rewriting-situations.ts'

// All situations, with 200 messages each, are in test/long.
const NAMES = ['no map', 'smtp_generic_maps after other maps', 'alias_maps after other maps', 'copies of rewritten mail']

test('a map of each type is compared', () => {
  const compared = new Set(NAMES.flatMap((name) => Object.keys(SITUATIONS[name] ?? {})))
  expect([...compared]).toEqual(
    expect.arrayContaining(['canonical_maps', 'virtual_alias_maps', 'alias_maps', 'smtp_generic_maps', 'always_bcc']),
  )
})

compareRewriting(NAMES, 40)
