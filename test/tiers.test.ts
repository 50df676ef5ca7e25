import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { PROCESS_TIER } from './tiers.ts'

const cwd = fileURLToPath(new URL('..', import.meta.url))

test.each(PROCESS_TIER)('%s names tests that exist', (glob) => {
  const names = /\{(.*)\}/.exec(glob)?.[1]?.split(',') ?? ['']
  for (const name of names) expect([name, globSync(glob.replace(/\{.*\}/, name), { cwd }).length > 0]).toEqual([name, true])
})
