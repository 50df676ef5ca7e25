import { afterAll, describe, expect, test } from 'vitest'
import { openInMemory } from '../../../src/store/sqlite/file/database.ts'
import { AUDIT_TEXTS } from '../../../src/store/records/audit-records.ts'
import { ROUND_TEXTS } from '../../../src/store/records/operation-round.ts'
import { spelled } from '../../../src/store/sqlite/records/record-calls.ts'
import * as writing from '../../../src/store/sqlite/writing/queries.ts'
import { firstLiveOf, liveBetween, liveGroupsOf, liveOf } from '../../../src/store/sqlite/reading/message-pages.ts'
import { place, SQLITE } from '../../../src/store/sqlite/reading/spelling.ts'
import { messageWithQueue } from '../../../src/store/sqlite/reading/sqlite-reader.ts'
import { engineStatements } from '../../support/engine-statements.ts'
import { readerStatements, withoutRows } from '../../support/reader-statements.ts'

/** Tables that grow with the backlog or with history. */
const BIG = ['message', 'recipient', 'chunk', 'attempt', 'history', 'audit', 'operated', 'origin', 'event', 'parked', 'kept_content']

/** Statements that may scan: an index of exactly the wanted rows, or up to a LIMIT. Each has its reason. */
const WALKS: Record<string, string> = {
  'destinationsDue: SCAN recipient USING COVERING INDEX recipient_due': 'its first step takes one entry',
  'leftLeased: SCAN recipient USING INDEX recipient_leased': 'as large as the active queue',
  'listed active: SCAN recipient USING COVERING INDEX recipient_leased': 'as large as the active queue',
  'oldestHistory: SCAN history': 'from the old end, up to a limit',
  'endAbandoned: SCAN audit USING INDEX audit_running': 'as large as what runs',
  'forgetOperated: SCAN operated': 'up to one row',
  'newestRecipientsAt: SCAN recipient USING INDEX recipient_suspect': 'as large as what was in flight at two crashes',
  'recipientsAt: SCAN recipient USING INDEX recipient_suspect': 'as large as what was in flight at two crashes',
  'countAt: SCAN recipient USING INDEX recipient_suspect': 'as large as what was in flight at two crashes',
  'countArriving: SCAN origin USING INDEX origin_arriving': 'as large as one round of a move',
  'isInUse: SCAN message': 'up to one row',
  'isInUse: SCAN origin USING INDEX origin_arriving': 'up to one row',
  'eventsBefore: SCAN event': 'from the new end, up to the first row that is older',
  'keptBytes: SCAN kept_content USING COVERING INDEX kept_content_until': 'the sum of all, without the rows',
  'oldestKept: SCAN kept_content USING INDEX kept_content_until': 'from the old end, up to a limit',
  'loadOf: SCAN recipient USING INDEX recipient_suspect': 'as large as what was in flight at two crashes',
  'scheduledAt: SCAN recipient USING INDEX recipient_suspect': 'as large as what was in flight at two crashes',
  'scheduledAt: SCAN message USING COVERING INDEX message_scheduled': 'reads the messages that are for later once',
}

const db = openInMemory()
afterAll(() => void db.close())

function planOf(text: string): readonly string[] {
  const names = [...text.matchAll(/[:$](\w+)/g)].map(([, name]) => name ?? '')
  const marks = text.match(/\?/g)?.length ?? 0
  const statement = db.prepare<unknown[], { detail: string }>(`explain query plan ${text}`)
  const rows =
    names.length > 0 ? statement.all(Object.fromEntries(names.map((name) => [name, 1]))) : statement.all(...Array<number>(marks).fill(1))
  return rows.map(({ detail }) => detail)
}

const READING = { liveBetween: liveBetween(1, 2), liveOf: liveOf([1]), firstLiveOf: firstLiveOf(1, 2), liveGroupsOf: liveGroupsOf([1]) }

const TEXTS: readonly (readonly [string, string])[] = [
  ...(await engineStatements('sqlite')),
  ...Object.entries({ ...AUDIT_TEXTS, ...ROUND_TEXTS }).map(([name, text]) => [name, spelled(text)] as const),
  ...Object.entries({ ...READING, messageWithQueue: messageWithQueue(1) }).map(([name, { text }]) => [name, text] as const),
  ...readerStatements({ spelling: SQLITE, place: withoutRows(place('far.example')), columns: () => 'id' }),
]

describe('no statement scans a big table', () => {
  test.each(TEXTS)('%s', (name, text) => {
    const scans = planOf(text).filter((step) => BIG.some((table) => step === `SCAN ${table}` || step.startsWith(`SCAN ${table} `)))
    expect(scans.filter((step) => WALKS[`${name}: ${step}`] === undefined)).toEqual([])
  })

  test('a statement that scans is detected', () => {
    expect(planOf('select * from recipient where address = ?')).toEqual(['SCAN recipient'])
  })
})

test('messages are found by the index of terms, the newest first', () => {
  const [, text = ''] = TEXTS.find(([name]) => name === 'messagesWith') ?? []
  const scans = planOf(text).filter((step) => step.startsWith('SCAN search'))
  expect(scans).toHaveLength(2)
  for (const step of scans) expect(step).toMatch(/^SCAN search_[01] VIRTUAL TABLE INDEX \d+:\S*M\d/)
})

test('due work is found by index alone, in due order', () => {
  for (const text of [
    writing.dueAt,
    writing.waitingAt,
    writing.expired,
    writing.dueSuspect,
    writing.dueWarnings,
    writing.oldestTrash,
    writing.nextNoticeDue,
  ]) {
    expect(planOf(text).join()).not.toContain('TEMP B-TREE')
  }
  expect(planOf(writing.waitingAt)[0]).toMatch(/^SEARCH recipient USING .*INDEX recipient_due \(destination=\? AND band=\? AND .*due_at/)
  expect(planOf(writing.dueRecipient)).toEqual(['SEARCH recipient USING INTEGER PRIMARY KEY (rowid=?)'])
  expect(planOf(writing.nextDueAt)).toEqual(['SEARCH recipient USING COVERING INDEX recipient_due (destination=? AND band=?)'])
})
