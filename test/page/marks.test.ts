/** Every state word of the page tells its meaning. */
import { expect, test } from 'vitest'
import { FINAL_STATES, LIVE_STATES, QUEUE_NAMES } from '../../src/mail/message.ts'
import { marked } from '../../src/page/markup/marks.ts'
import { stateCell } from '../../src/page/screens/destinations-screen.ts'
import { nodeMark } from '../../src/page/screens/system/nodes-screen.ts'
import { stateMark } from '../../src/page/screens/system/subscription-marks.ts'
import { DESTINATION_STATES } from '../../src/store/destination-status.ts'
import { OPERATION_STATES } from '../../src/store/records/audit-log.ts'
import { sampleView } from '../support/sample-view.ts'

const title = (markup: string): string => /^<span class="marked" title="([^"]+)">/.exec(markup)?.[1] ?? ''

test.each([
  ['leased', 'in the active queue: its delivery runs, or waits for a slot'],
  ['parked', 'not scheduled: its message is on hold, corrupt or in the trash'],
])('the state %s tells its meaning', (state, about) => {
  expect(title(marked(state).markup)).toBe(about)
})

test('each state of queues, recipients, attempts, destinations and operations tells its meaning in other words', () => {
  const states = new Set([...QUEUE_NAMES, 'trash', 'gone', ...LIVE_STATES, ...FINAL_STATES, ...DESTINATION_STATES, ...OPERATION_STATES])
  expect(states.size).toBeGreaterThan(20)
  for (const state of states) {
    expect(title(marked(state).markup), state).toMatch(/\w+ \w+/)
    expect(title(marked(state).markup).startsWith(state), state).toBe(false)
  }
})

test('a word that nodes, subscriptions and queues have in common tells what it means there', () => {
  const nodes = (['active', 'draining', 'silent', 'lost'] as const).map((state) => title(nodeMark(state).markup))
  const subscriptions = [
    { state: 'active', tries: 0 },
    { state: 'active', tries: 2 },
    { state: 'disabled', tries: 9 },
  ] as const
  const all = [...nodes, ...subscriptions.map((one) => title(stateMark(one).markup)), title(marked('active').markup)]
  expect(all).not.toContain('')
  expect(new Set(all).size).toBe(all.length)
})

test('a destination that delivers nothing says so, and another word than that of a mark has no meaning of the mark', () => {
  expect(title(stateCell(sampleView('destinations'), { state: 'open', window: 5, refuses_all: true }).markup)).toBe(
    'its last attempts delivered nothing',
  )
  expect(marked('open', 'accepted').markup).not.toContain('title')
})
