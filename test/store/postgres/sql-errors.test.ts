import { DatabaseError } from 'pg'
import { expect, test } from 'vitest'
import { readFailed } from '../../../src/store/postgres/session/sql-errors.ts'
import { ReadFailed, StoreUnavailable } from '../../../src/store/queue-store.ts'

const errorOf = (code: string): DatabaseError => Object.assign(new DatabaseError('failed', 0, 'error'), { code })

test.each(['58030', 'XX001', 'XX002'])('a read that fails with %s concerns what was read', (code) => {
  expect(readFailed(errorOf(code))).toBeInstanceOf(ReadFailed)
})

test.each(['55P03', '53300', '57014', '57P01'])('a read that fails with %s concerns all reads', (code) => {
  const error = readFailed(errorOf(code))
  expect([error instanceof StoreUnavailable, error instanceof ReadFailed]).toEqual([true, false])
})
