/** Words for the events after the position of a subscription. */
import { expect, test } from 'vitest'
import { eventsBehind } from '../../src/resources/events-behind.ts'

const NO_CHOICE = { types: ['*'], destinations: [], senders: [] }

test('the events behind a subscription are of all types, which is said when it leaves some of them out', () => {
  expect(eventsBehind({ ...NO_CHOICE, behind: 1 })).toBe('1 event')
  expect(eventsBehind({ ...NO_CHOICE, types: [], behind: 416 })).toBe('416 events')
  for (const choice of [{ types: ['recipient.*'] }, { destinations: ['a.example'] }, { senders: ['*@b.example'] }])
    expect(eventsBehind({ ...NO_CHOICE, ...choice, behind: 416 })).toBe('416 events of all types')
})
