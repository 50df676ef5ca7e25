import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ANY_EVENT, eventSelector, selectedTypes } from '../../src/events/event-filter.ts'
import { EVENT_TYPES, EVENTS, type EventType } from '../../src/events/event-types.ts'
import { keptData } from '../../src/events/event-values.ts'
import type { EventData } from '../../src/events/published-kinds.ts'
import { cursorText, eventId, lostEventId, readCursor } from '../../src/events/kept-event.ts'

/** An event of a type, whose other members are null. */
const event = <T extends EventType>(type: T, members: Partial<EventData[T]>) => ({
  type,
  data: keptData(type, { ...Object.fromEntries(EVENTS[type].members.map((name) => [name, null])), ...members } as EventData[T]),
})

test('types are selected by patterns', () => {
  expect(selectedTypes([])).toEqual(EVENT_TYPES)
  expect(selectedTypes(['*'])).toEqual(EVENT_TYPES)
  expect(selectedTypes(['Recipient.*', 'store.trouble'])).toEqual([
    'recipient.delivered',
    'recipient.deferred',
    'recipient.bounced',
    'recipient.expired',
    'recipient.suppressed',
    'store.trouble',
  ])
  expect(selectedTypes(['recipient'])).toEqual([])
  expect(selectedTypes(['recipient?bounced'])).toEqual([])
})

test('all lists of a filter must select an event', () => {
  const selects = eventSelector({ types: ['recipient.*'], destinations: ['*.example.org', 'far.example'], senders: ['app@*'] })
  const type = 'recipient.bounced'
  expect(selects(event(type, { destination: 'a.example.org', sender: 'app@us.example' }))).toBe(true)
  expect(selects(event(type, { destination: 'FAR.example', sender: 'App@us.example' }))).toBe(true)
  expect(selects(event(type, { destination: 'near.example', sender: 'app@us.example' }))).toBe(false)
  expect(selects(event(type, { destination: 'far.example', sender: '' }))).toBe(false)
  expect(selects(event(type, { sender: 'app@us.example' }))).toBe(false)
  expect(selects(event('message.removed', { sender: 'app@us.example' }))).toBe(false)
})

test('senders are selected by their normal form, and those of mail of earlier versions in other forms too', () => {
  for (const pattern of ['boss@us.example', '"boss"@us.example', 'bo*@us.example']) {
    const selects = eventSelector({ ...ANY_EVENT, senders: [pattern] })
    for (const sender of ['boss@us.example', '"boss"@us.example', String.raw`"bo\ss"@us.example`]) {
      expect(selects(event('message.removed', { sender })), `${pattern} ${sender}`).toBe(true)
    }
    expect(selects(event('message.removed', { sender: 'bos.s@far.example' }))).toBe(false)
  }
})

test('a pattern without a wildcard selects exactly its text', () => {
  fc.assert(
    fc.property(fc.string(), fc.string({ minLength: 1 }), (destination, pattern) => {
      const selects = eventSelector({ ...ANY_EVENT, destinations: [pattern.replaceAll('*', '')] })
      const isSame = pattern.replaceAll('*', '').toLowerCase() === destination.toLowerCase()
      // Some characters have an equal in the other case that toLowerCase does not give.
      fc.pre(isSame || /^[ -~]*$/.test(pattern + destination))
      return selects(event('destination.died', { destination })) === isSame
    }),
  )
})

test('an id is a position', () => {
  expect(readCursor('0')).toEqual({ epoch: null, seq: 0 })
  expect(readCursor(eventId(35, 12))).toEqual({ epoch: 35, seq: 12 })
  expect(readCursor(cursorText(2_176_782_335, 1))).toEqual({ epoch: 2_176_782_335, seq: 1 })
  for (const text of ['', '1', 'evt_', 'z_-1', 'evt_z_1.5', lostEventId(35, { from: 1, to: 2, count: 2 })])
    expect(readCursor(text)).toBeUndefined()
})
