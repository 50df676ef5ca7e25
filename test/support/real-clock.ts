/** The clock of a queue that begins as the clock of this machine. */
import { QueueClock } from '../../src/system/queue-clock.ts'
import { systemClock } from '../../src/system/system-clock.ts'

export const realClock = new QueueClock(systemClock)
