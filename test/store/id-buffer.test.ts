import { expect, test } from 'vitest'
import { ID_BLOCK, IdBuffer } from '../../src/store/id-buffer.ts'
import { StoreUnavailable } from '../../src/store/queue-store.ts'

const block = (from: number): readonly number[] => Array.from({ length: ID_BLOCK }, (_, n) => from + n)
const take = (ids: IdBuffer, count: number): number[] => Array.from({ length: count }, () => ids.next())

test('ids are given out in order across blocks, whether they are reserved at once or later', async () => {
  let last = 1
  const next = () => block((last += ID_BLOCK) - ID_BLOCK)
  const whole = Array.from({ length: 3 * ID_BLOCK }, (_, n) => n + 1)
  expect(take(new IdBuffer(next), 3 * ID_BLOCK)).toEqual(whole)
  last = 1
  const ids = new IdBuffer(() => Promise.resolve(next()), next())
  const given: number[] = []
  while (given.length < 3 * ID_BLOCK) {
    given.push(...take(ids, 256))
    await Promise.resolve()
  }
  expect(given).toEqual(whole)
})

test('a block is reserved when half of one is left, one at a time', () => {
  let reserved = 0
  const ids = new IdBuffer(() => {
    reserved++
    return new Promise(() => undefined)
  }, block(1))
  take(ids, ID_BLOCK / 2)
  expect(reserved).toBe(0)
  take(ids, ID_BLOCK / 2)
  expect(reserved).toBe(1)
  expect(() => ids.next()).toThrow(StoreUnavailable)
})

test('a reservation that failed is repeated, and its error is the cause when no ids are left', async () => {
  const full = new StoreUnavailable('the disk is full')
  let answer: () => Promise<readonly number[]> = () => Promise.reject(full)
  const ids = new IdBuffer(() => answer(), [7])
  expect(ids.next()).toBe(7)
  await Promise.resolve()
  await Promise.resolve()
  expect(() => ids.next()).toThrow(expect.objectContaining({ name: 'StoreUnavailable', cause: full }) as Error)
  await Promise.resolve()
  await Promise.resolve()
  answer = () => Promise.resolve(block(8))
  expect(() => ids.next()).toThrow(StoreUnavailable)
  await Promise.resolve()
  expect(ids.next()).toBe(8)
})
