import { expect, test } from 'vitest'
import { createStoreCore } from '../../../../src/store/sqlite/core/store-core.ts'
import { openInMemory } from '../../../../src/store/sqlite/file/database.ts'
import { createSqliteReader } from '../../../../src/store/sqlite/reading/sqlite-reader.ts'

test('all statements that a store and a reader prepare compile', () => {
  const db = openInMemory()
  const prepare = db.prepare.bind(db)
  const texts: string[] = []
  Object.assign(db, {
    prepare: (text: string) => {
      texts.push(text)
      return prepare(text)
    },
  })
  createStoreCore(db, { owner: 1, until: Infinity }, () => Infinity)
  createSqliteReader(db)
  expect(texts.length).toBeGreaterThan(200)
  for (const text of texts) expect(() => prepare(text).reader, text).not.toThrow()
  db.close()
})
