/** Traces in virtual time: which sessions they select, what they show, and how they end. */
import { describe, expect, test } from 'vitest'
import type { SessionRecorder } from '../../src/sessions/session-recorder.ts'
import { SessionRecordings } from '../../src/sessions/session-recordings.ts'
import { LINES_PER_SECOND, MOST_TRACES, traceWords, type TraceEntry, type TraceTerms } from '../../src/sessions/traces.ts'
import { MINUTE, SECOND } from '../../src/system/clock.ts'
import { QueueClock } from '../../src/system/queue-clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const TERMS: TraceTerms = { direction: 'to', count: 1, for: 10 * MINUTE }
const HOST = { protocol: 'smtp', peer: 'mx.far.example[192.0.2.1]:25', direction: 'to' } as const
const CLIENT = { protocol: 'smtp', peer: 'unknown[192.0.2.9]:40312', direction: 'from' } as const
const MAIL = { destination: 'far.example', sender: 'App@shop.example', recipients: ['ann@far.example'] }

function relay(keeps = false) {
  const clock = new VirtualClock()
  const recordings = new SessionRecordings({ clock: new QueueClock(clock), keepsDeliveries: () => keeps })
  const begin = (ends: typeof HOST | typeof CLIENT = HOST, facts = {}): SessionRecorder => {
    const recorder = recordings.begin(ends, facts)
    if (recorder === null) throw new Error('the session is not recorded')
    return recorder
  }
  const start = (terms: Partial<TraceTerms> = {}) => {
    const entries: TraceEntry[] = []
    const reader = { isBehind: false }
    const output = { write: (entry: TraceEntry) => void entries.push(entry), isBehind: () => reader.isBehind }
    const running = recordings.traces.reserve()?.start({ ...TERMS, ...terms }, output) ?? null
    const texts = () => entries.map((entry) => ('text' in entry ? `${entry.session}: ${entry.text.trim()}` : `${entry.dropped} dropped`))
    return { running, texts, reader }
  }
  return { clock, recordings, begin, start }
}

describe('a session', () => {
  test('is shown as it is said, and its end ends the trace', async () => {
    const { begin, start, clock } = relay()
    const { running, texts } = start()
    const session = begin(HOST, MAIL)
    session.connected('198.51.100.7')
    clock.jumpTo(clock.now() + 31)
    session.server(['220 mx.far.example ESMTP'])
    session.client('AUTH PLAIN AGFubgBzZWNyZXQ=')
    expect(texts().slice(1)).toEqual(['1: 0 * connected from 198.51.100.7', '1: 31 S 220 mx.far.example ESMTP', '1: 31 C AUTH PLAIN ****'])
    session.end()
    session.client('QUIT')
    expect(await running?.ended).toEqual({ why: 'count', sessions: 1, dropped: 0 })
    expect(texts()).toHaveLength(4)
  })

  test('is not kept for a reader that has stopped: its lines are dropped, and counted', () => {
    const { begin, start, clock } = relay()
    const { texts, reader } = start()
    const session = begin(HOST, MAIL)
    session.connected('198.51.100.7')
    reader.isBehind = true
    for (let n = 0; n < 10; n++) session.client('NOOP')
    reader.isBehind = false
    clock.jumpTo(clock.now() + SECOND)
    session.client('QUIT')
    expect(texts().slice(2)).toEqual(['10 dropped', '1: 1000 C QUIT'])
  })

  test('of a client is shown from its beginning when its sender or recipient is known', () => {
    const { begin, start } = relay()
    const [sender, recipient] = [
      start({ direction: 'from', sender: '*@shop.example' }),
      start({ direction: 'from', recipient: 'ann@far.example' }),
    ]
    const session = begin(CLIENT, { listener: '0.0.0.0:25' })
    session.connected('192.0.2.2')
    session.client('EHLO shop.example')
    expect([sender.texts(), recipient.texts()]).toEqual([[], []])
    session.client('MAIL FROM:<app@shop.example> SIZE=10')
    expect(sender.texts().map((text) => text.slice(0, 18))).toEqual([
      '1: # deferd sessio',
      '1: 0 * connected t',
      '1: 0 C EHLO shop.e',
      '1: 0 C MAIL FROM:<',
    ])
    session.client('RCPT TO:<bob@far.example>')
    expect(recipient.texts()).toEqual([])
    session.client('RCPT TO:<ann@FAR.example>')
    expect(recipient.texts()).toHaveLength(6)
  })

  test('over a kept connection is shown when its next mail is selected', () => {
    const { begin, start } = relay(true)
    const { texts } = start({ recipient: 'bob@far.example' })
    const session = begin(HOST, MAIL)
    session.connected('198.51.100.7')
    expect(texts()).toEqual([])
    session.learn({ recipients: ['bob@far.example'] })
    session.client('RSET')
    expect(texts()).toHaveLength(3)
  })

  test('without a connection that was tried is not counted', () => {
    const { begin, start } = relay()
    const { texts } = start()
    begin(HOST, MAIL).end()
    begin(HOST, MAIL).event('cannot connect: Connection refused')
    expect(texts().at(-1)).toBe('1: 0 * cannot connect: Connection refused')
  })

  test.each([
    [{ destination: 'far.example' }, true],
    [{ destination: '*.example', peer: 'mx.*' }, true],
    [{ peer: '192.0.2.1' }, true],
    [{ peer: 'mx.far.example[192.0.2.1]:25' }, true],
    [{ source: '198.51.100.7', sender: 'App@SHOP.example' }, true],
    [{ recipient: '*@far.example' }, true],
    [{ destination: 'other.example' }, false],
    [{ peer: '192.0.2.2' }, false],
    [{ source: '198.51.100.8' }, false],
    [{ sender: 'ann@far.example' }, false],
    [{ direction: 'from' as const }, false],
  ])('is selected by %j: %s', (filter, isSelected) => {
    const { begin, start } = relay(true)
    const { texts } = start(filter)
    begin(HOST, MAIL).connected('198.51.100.7')
    expect(texts().length > 0).toBe(isSelected)
  })
})

test('nothing is recorded without a trace in the direction', () => {
  const { recordings, start } = relay()
  expect([recordings.wants('to'), recordings.wants('from'), recordings.begin(CLIENT, {})]).toEqual([false, false, null])
  const { running } = start({ direction: 'from' })
  expect([recordings.wants('to'), recordings.wants('from')]).toEqual([false, true])
  running?.stop()
})

test('three traces run at the same time; one that ends makes room', async () => {
  const { start, recordings } = relay()
  const all = Array.from({ length: MOST_TRACES }, () => start())
  expect(start().running).toBeNull()
  all[0]?.running?.stop()
  expect(await all[0]?.running?.ended).toEqual({ why: 'stopped', sessions: 0, dropped: 0 })
  expect(start().running).not.toBeNull()
  recordings.traces.close()
  expect(recordings.wants('to')).toBe(false)
})

test('a place is taken before its trace starts, and given back when it does not', () => {
  const { start, recordings } = relay()
  const places = Array.from({ length: MOST_TRACES }, () => recordings.traces.reserve())
  expect(start().running).toBeNull()
  expect(recordings.wants('to')).toBe(false)
  places[0]?.leave()
  expect(start().running).not.toBeNull()
  expect(start().running).toBeNull()
})

test('a trace ends after its time', async () => {
  const { clock, start } = relay()
  const { running } = start({ for: 5 * SECOND })
  clock.runNext()
  expect(await running?.ended).toEqual({ why: 'time', sessions: 0, dropped: 0 })
})

test('lines beyond the limit of a second are counted', async () => {
  const { clock, begin, start } = relay()
  const { running, texts } = start()
  const session = begin(HOST, MAIL)
  for (let n = 0; n < LINES_PER_SECOND + 20; n++) session.client('NOOP')
  expect(texts()).toHaveLength(LINES_PER_SECOND)
  clock.jumpTo(clock.now() + SECOND)
  session.client('QUIT')
  expect(texts().slice(LINES_PER_SECOND)).toEqual(['21 dropped', '1: 1000 C QUIT'])
  session.end()
  expect(await running?.ended).toEqual({ why: 'count', sessions: 1, dropped: 21 })
})

test('the terms in words are the options of the command', () => {
  expect(traceWords({ ...TERMS, direction: 'from', sender: 'a@b.example', count: 2 })).toBe(
    '--smtpd --sender a@b.example --count 2 --for 10m',
  )
})
