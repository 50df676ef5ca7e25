import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { placeOf } from '../../../src/config/values/database-url.ts'

test('queue_database decides', () => {
  expect([placeOf({ queue_database: '' }), placeOf({ queue_database: 'postgresql://mail@db/deferd' })]).toEqual(['folder', 'database'])
})

test('no other file compares the parameter', () => {
  const others = globSync('src/**/*.ts').filter((file) => file !== 'src/config/values/database-url.ts')
  const comparing = others.filter((file) => /queue_database (?:===|!==)|\bdatabase (?:===|!==) ''/.test(readFileSync(file, 'utf8')))
  expect(comparing).toEqual([])
})
