import { DatabaseError } from 'pg'
import { expect, test } from 'vitest'
import { databaseAway, failureKind, readFailed, statementFailed } from '../../../src/store/postgres/session/sql-errors.ts'
import { ReadFailed, StoreUnavailable } from '../../../src/store/queue-store.ts'

const errorOf = (code: string): DatabaseError => Object.assign(new DatabaseError('failed', 0, 'error'), { code })

test.each(['58030', 'XX001', 'XX002'])('a read that fails with %s concerns what was read', (code) => {
  expect(readFailed(errorOf(code))).toBeInstanceOf(ReadFailed)
})

test.each(['55P03', '53300', '57014', '57P01'])('a read that fails with %s concerns all reads', (code) => {
  const error = readFailed(errorOf(code))
  expect([error instanceof StoreUnavailable, error instanceof ReadFailed]).toEqual([true, false])
})

test.each([
  ['42501', 78],
  ['42P01', 78],
  ['42883', 78],
  ['0A000', 78],
  ['2200H', 78],
  ['53100', 75],
  ['53300', 75],
  ['25006', 75],
  ['57014', 75],
  ['P0001', 75],
])('a statement that fails with %s concerns the database: mail is refused, and a start ends with %i', (code, exitCode) => {
  expect(failureKind(errorOf(code))).toBe('away')
  expect(databaseAway(errorOf(code))).toBeInstanceOf(StoreUnavailable)
  expect(statementFailed(errorOf(code))).toMatchObject({ exitCode })
})

test.each(['22001', '22021', '23505', '23514'])(
  'a value that is refused with %s, and an error of the program, stay what they are',
  (code) => {
    const error = errorOf(code)
    expect([failureKind(error), statementFailed(error)]).toEqual(['call', error])
    const bug = new TypeError('undefined is no object')
    expect([failureKind(bug), statementFailed(bug)]).toEqual(['call', bug])
  },
)
