import Database from 'better-sqlite3'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { messageOf, recipientId, RECIPIENTS_PER_MESSAGE } from '../../../src/mail/message.ts'
import { CHUNKS_PER_CONTENT } from '../../../src/store/chunks.ts'
import { chunkRange, messageIdOf, recipientRange } from '../../../src/store/sql/id-ranges.ts'
import { contentIdOf } from '../../../src/store/sqlite/writing/queries.ts'

const db = new Database(':memory:')
const truth = (expression: string, values: object): boolean => db.prepare(`select ${expression}`).pluck().get(values) === 1
const number = (expression: string, values: object): unknown => db.prepare(`select ${expression}`).pluck().get(values)

/** Message ids up to 2^36, whose recipient ids (× 2^17) are at most 2^53. */
const messages = fc.integer({ min: 1, max: 2 ** 36 })

test('SQL and TypeScript agree on which recipients belong to a message', () => {
  fc.assert(
    fc.property(messages, fc.integer({ min: 0, max: RECIPIENTS_PER_MESSAGE - 1 }), (message, position) => {
      const id = recipientId(message, position)
      expect(messageOf(id)).toBe(message)
      expect(number(messageIdOf(':id'), { id: BigInt(id) })).toBe(message)
      const isIn = (of: number) => truth(`:id ${recipientRange(':of')}`, { id: BigInt(id), of: BigInt(of) })
      expect([isIn(message - 1), isIn(message), isIn(message + 1)]).toEqual([false, true, false])
    }),
    { numRuns: 50 },
  )
})

test('a range of messages has the recipients of each of them and no others', () => {
  const isIn = (id: number) => truth(`:id ${recipientRange(':first', ':last')}`, { id: BigInt(id), first: 5n, last: 7n })
  expect([recipientId(5, 0) - 1, recipientId(5, 0), recipientId(8, 0) - 1, recipientId(8, 0)].map(isIn)).toEqual([false, true, true, false])
})

test('the chunks of a content are one range of ids', () => {
  const [first, last] = [9 * CHUNKS_PER_CONTENT, 10 * CHUNKS_PER_CONTENT - 1]
  const isIn = (id: number) => truth(`:id ${chunkRange(':content')}`, { id: BigInt(id), content: 9n })
  expect([first - 1, first, last, last + 1].map(isIn)).toEqual([false, true, true, false])
  expect(number(contentIdOf(':id'), { id: BigInt(last) })).toBe(9)
})
