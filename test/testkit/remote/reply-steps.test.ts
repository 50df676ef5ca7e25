import { expect, test } from 'vitest'
import { DEFAULT_ACTION, stepsOf } from '../../../src/testkit/remote/reply-steps.ts'
import type { ReplyAction } from '../../../src/testkit/remote/rule.ts'

/** A value of each member that is not that of the default action. */
const OTHERS: ReplyAction = {
  text: { kind: 'reply', lines: ['450 4.2.1 busy'] },
  delay: 1_000,
  drip: 100,
  split: { at: 3, gap: 100 },
  repeat: 2,
  cut: 3,
  ending: 'fin',
}

const steps = (action: ReplyAction) =>
  [...stepsOf(action, ['250 2.0.0 Ok'])].map((step) => (step.do === 'send' ? String(step.bytes) : step))

test('the default action sends the default reply at once', () => {
  expect(steps(DEFAULT_ACTION)).toEqual(['250 2.0.0 Ok\r\n'])
})

test.each(Object.keys(OTHERS) as (keyof ReplyAction)[])('%s has an effect on the steps', (name) => {
  expect(steps({ ...DEFAULT_ACTION, [name]: OTHERS[name] })).not.toEqual(steps(DEFAULT_ACTION))
})
