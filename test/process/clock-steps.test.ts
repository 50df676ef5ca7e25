import { expect, test } from 'vitest'
import { FORWARD_AND_BACK, steppedDaemon } from '../support/clock-steps/stepped-daemon.ts'
import { noFaultsBecause } from '../support/io-faults/io-faults.ts'

const why = noFaultsBecause()
const title = (text: string): string => (why === null ? text : `${text} (not run: ${why})`)

test.runIf(why === null)(
  title(
    'the wall clock is set by 10 years and by an hour, forward and back, under load: greetings are immediate, mail is delivered in time',
  ),
  { timeout: 120_000 },
  async () => {
    // The long form measures one second; other tests run beside this one.
    expect((await steppedDaemon(FORWARD_AND_BACK, 1_500)).longestGreeting).toBeLessThan(2_000)
  },
)
