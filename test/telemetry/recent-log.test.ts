import { expect, test } from 'vitest'
import { HOUR, MINUTE } from '../../src/system/clock.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import { LONGEST_LINE, MOST_LINES, RecentLog, type LogFilter } from '../../src/telemetry/recent-log.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'

const T0 = 1_790_000_000_000
const ALL: LogFilter = { level: 'warn', event: null, queueId: null, destination: null, text: null, after: null, before: null }

const note = (text: string, level: 'info' | 'warning' | 'error' | 'fatal' = 'warning'): QueueEvent => ({ kind: 'note', level, text })
const died = (destination: string): QueueEvent => ({
  kind: 'died',
  destination,
  until: T0,
  siteStatus: { status: '4.4.1', reason: 'connect to mx[192.0.2.1]:25: Connection refused', stage: 'connect' },
})

function logOf(...events: readonly QueueEvent[]): RecentLog {
  const log = new RecentLog(T0)
  for (const [i, event] of events.entries()) log.listen(event, T0 + i * MINUTE)
  return log
}

const found = (log: RecentLog, filter: Partial<LogFilter> = {}) =>
  log.find({ filter: { ...ALL, ...filter }, through: null, limit: 10 }).lines.map(({ text }) => text)

test('keeps warnings and errors, the last one first, and nothing else', () => {
  const log = logOf(note('one'), note('two', 'info'), { kind: 'removed', message: MESSAGE }, note('three', 'error'), note('four', 'fatal'))
  expect(found(log)).toEqual(['four', 'three', 'one'])
  expect(found(log, { level: 'error' })).toEqual(['four', 'three'])
  expect(log.find({ filter: ALL, through: null, limit: 1 }).counts).toEqual({ warn: 1, error: 1, fatal: 1 })
})

const MESSAGE = { id: 1, createdAt: T0, arrivedAt: T0, sender: '', size: 1, contentId: 1, smtputf8: false }
const ID = formatQueueId(T0, 1)
const OTHER = formatQueueId(T0, 2)

test('a line has the messages that it names, and those of its event', () => {
  const log = logOf(
    note(`${ID}: not signed with DKIM`),
    note(`asked about (${ID}), and ${OTHER}.`),
    { kind: 'quarantined', message: MESSAGE, why: 'unreadable' },
    { kind: 'mail-lost', queueIds: Array.from({ length: 30 }, (_, i) => formatQueueId(T0, i + 2)), timeline: null },
    note('accepted, because zzzzzzzzzzzzz is a word'),
  )
  const lines = log.find({ filter: ALL, through: null, limit: 9 }).lines.toReversed()
  expect(lines.slice(0, 3).map(({ queueIds }) => queueIds)).toEqual([[ID], [ID, OTHER], [ID]])
  expect(lines[3]?.queueIds).toHaveLength(30)
  expect(lines[4]?.queueIds).toEqual([])
  expect(found(log, { queueId: ID })).toHaveLength(3)
  expect(found(log, { queueId: formatQueueId(T0, 31) })).toHaveLength(1)
})

test('a destination selects the lines about it, and those that name it', () => {
  const log = logOf(
    died('far.example'),
    note('MTA-STS policy of far.example cannot be fetched'),
    died('smtp:[192.0.2.1]:25'),
    note('other'),
  )
  expect(found(log, { destination: 'far.example' })).toHaveLength(2)
  expect(found(log, { destination: '*:25', event: 'died' })).toHaveLength(2)
  expect(found(log, { destination: 'example' })).toEqual([])
})

test('a text, an event and a range of times select lines', () => {
  const log = logOf(note('a certificate expires'), died('far.example'), note('done', 'error'))
  expect(found(log, { text: '*certificate*' })).toEqual(['a certificate expires'])
  expect(found(log, { event: 'died' })).toHaveLength(1)
  expect(found(log, { after: T0 + MINUTE, before: T0 + 2 * MINUTE })).toHaveLength(1)
})

test('a flood pushes out the oldest lines, and the log says since when it has all', () => {
  const log = logOf(...Array.from({ length: MOST_LINES }, (_, i) => note(`line ${i}`)))
  expect(log.find({ filter: ALL, through: null, limit: 1 }).since).toBe(T0)
  log.listen(note('x'.repeat(LONGEST_LINE + 1)), T0 + MOST_LINES * MINUTE)
  const { since, lines, counts } = log.find({ filter: ALL, through: null, limit: MOST_LINES * 2 })
  expect([since, lines.length, counts.warn]).toEqual([T0 + 1, MOST_LINES, MOST_LINES])
  expect([lines.at(-1)?.text, lines[0]?.text.length]).toEqual(['line 1', LONGEST_LINE])
})

test('notes of the last hour need attention, other events not', () => {
  const log = logOf(note('old'), died('far.example'), note('first'), note('last', 'error'))
  expect(log.notes(T0 + HOUR + MINUTE)).toEqual({ count: 2, last: 'last', since: T0 + 2 * MINUTE })
  expect(log.notes(T0 + 2 * HOUR)).toBeNull()
})
