import { describe, expect, test } from 'vitest'
import type { QueueFilter } from '../../src/queue/reader.ts'
import { openInMemory } from '../../src/queue/sqlite/database.ts'
import * as writing from '../../src/queue/sqlite/queries.ts'
import * as reading from '../../src/queue/sqlite/reader-queries.ts'

/** Tables that grow with the backlog or with history. */
const BIG = ['message', 'recipient', 'chunk', 'attempt', 'departed', 'audit']

/** These walk an index that holds only what they look for, or stop at a LIMIT; each says why it may. */
const WALKS: Record<string, string> = {
  'destinationsDue: SCAN recipient USING COVERING INDEX recipient_due': 'its first step takes one entry',
  'leftLeased: SCAN recipient USING INDEX recipient_leased': 'as large as the active queue',
  'listed active: SCAN recipient USING COVERING INDEX recipient_leased': 'as large as the active queue',
  'oldestDeparted: SCAN departed': 'from the old end, up to a limit',
  'loadOf: SCAN recipient USING INDEX recipient_suspect': 'as large as what was in flight at two crashes',
}

function planOf(text: string): readonly string[] {
  const db = openInMemory()
  const names = [...text.matchAll(/:(\w+)/g)].map(([, name]) => name ?? '')
  const marks = text.match(/\?/g)?.length ?? 0
  const statement = db.prepare<unknown[], { detail: string }>(`explain query plan ${text}`)
  const rows =
    names.length > 0 ? statement.all(Object.fromEntries(names.map((name) => [name, 1]))) : statement.all(...Array<number>(marks).fill(1))
  db.close()
  return rows.map(({ detail }) => detail)
}

/** Listings have no fixed text: what a filter asks makes it. */
const FILTERS: readonly QueueFilter[] = [
  {},
  { sender: 'a', arrivedBefore: 1 },
  { recipient: 'a', destination: 'b', attemptsOver: 1, reply: 'c', queue: 'deferred' },
  ...(['incoming', 'active', 'deferred', 'hold', 'corrupt', 'trash'] as const).map((queue) => ({ queue })),
]

const TEXTS: readonly (readonly [string, string])[] = [
  ...[...Object.entries(writing), ...Object.entries(reading)].flatMap(([name, text]) =>
    typeof text === 'string' ? [[name, text] as const] : [],
  ),
  ...FILTERS.map((filter) => [`listed ${filter.queue ?? Object.keys(filter).join()}`, reading.listedBy(filter)] as const),
]

describe('no statement reads a big table from end to end', () => {
  test.each(TEXTS)('%s', (name, text) => {
    const scans = planOf(text).filter((step) => BIG.some((table) => step === `SCAN ${table}` || step.startsWith(`SCAN ${table} `)))
    expect(scans.filter((step) => WALKS[`${name}: ${step}`] === undefined)).toEqual([])
  })

  test('and a statement that did would be seen', () => {
    expect(planOf('select * from recipient where address = ?')).toEqual(['SCAN recipient'])
  })
})

test('work is picked by index alone, in the order in which it is due', () => {
  for (const text of [writing.dueAt, writing.expired, writing.dueSuspect, writing.dueWarnings, writing.oldestTrash, writing.nextIndebted]) {
    expect(planOf(text).join()).not.toContain('TEMP B-TREE')
  }
  expect(planOf(writing.nextDueAt)).toEqual(['SEARCH recipient USING COVERING INDEX recipient_due (destination=?)'])
})
