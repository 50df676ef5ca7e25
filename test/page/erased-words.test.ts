/** The plan of an erasure on the page: records by what they are, not by their tables. */
import { expect, test } from 'vitest'
import { erasureParts } from '../../src/page/screens/history/erase-screen.ts'
import { erasedWords } from '../../src/presentation/erased-words.ts'
import { html } from '../../src/presentation/html.ts'
import { ERASED_TABLES, KEPT_CONTENT } from '../../src/store/erasure/erased-tables.ts'
import { wordsIn } from '../support/page-requests.ts'
import { sampleView } from '../support/sample-view.ts'
import { SEARCH_TABLES } from '../../src/store/sqlite/search/search-queries.ts'

test('the plan of an erasure names the records of all tables as people know them', () => {
  const tables = [
    ...Object.values(ERASED_TABLES)
      .flat()
      .map(({ name }) => name),
    KEPT_CONTENT,
    ...SEARCH_TABLES,
  ]
  for (const table of new Set(tables)) expect(erasedWords(table), table).not.toMatch(/_|^(?:session|event|parked|audit|history)$/)
  const rows = ['history', 'event', 'parked', 'session'].map((table) => ({ table, rows: 2 }))
  const { title, about } = erasureParts(
    sampleView('history'),
    { messages: 2, rows, live_messages: 0, before: 0 },
    { sender: 'app@us.example' },
  )
  expect(title).toBe('Erase addresses in 8 records for ever?')
  expect(html`${about}`.markup).toContain('messages of the history (2), events (4), dialogues with hosts (2)')
  expect(wordsIn(`<main>${html`${about}`.markup}`)).toContain('of senders app@us.example in all mail that has left before 1970-01-01 00:00')
})
