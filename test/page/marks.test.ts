import { expect, test } from 'vitest'
import { marked } from '../../src/page/markup/marks.ts'

test.each([
  ['leased', 'title="in the active queue: its delivery runs, or waits for a slot"'],
  ['parked', 'title="not scheduled: its message is on hold, corrupt or in the trash"'],
])('the state %s tells its meaning', (state, title) => {
  expect(marked(state).markup).toMatch(`<span class="marked" ${title}>`)
})

test('a state that tells its meaning itself has no title', () => {
  expect(marked('delivered').markup).not.toContain('title')
})
