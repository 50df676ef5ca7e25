import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { placeOf } from '../../../src/config/values/queue-place.ts'

test('queue_database decides', () => {
  expect([placeOf({ queue_database: '' }), placeOf({ queue_database: 'postgresql://mail@db/deferd' })]).toEqual(['folder', 'database'])
})

test('no other file compares the parameter', () => {
  // The parser of the URL compares the name of the database in it.
  const others = globSync('src/**/*.ts').filter((file) => !/config\/values\/(?:queue-place|database-url)\.ts$/.test(file))
  const comparing = others.filter((file) => /queue_database (?:===|!==)|\bdatabase (?:===|!==) ''/.test(readFileSync(file, 'utf8')))
  expect(comparing).toEqual([])
})
