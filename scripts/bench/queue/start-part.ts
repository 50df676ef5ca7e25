/** The start of a daemon on a million deferred messages, beside an empty queue. */
import { join } from 'node:path'
import { startDaemon } from '../figures/bench-daemon.ts'
import { copyQueue, fillQueue } from '../figures/filled-queue.ts'
import { firstAccept } from '../figures/first-accept.ts'
import type { Part } from '../figures/subject.ts'
import { rotated } from '../statistics.ts'

const NAMES = ['empty', 'full'] as const
type Name = (typeof NAMES)[number]
/** ms. */
const MOST = 1_000

export const START: Part = {
  name: 'start',
  about: 'a million queued: time from the start of the process to the first accepted message',
  measure: async (setting) => {
    const queues: Readonly<Record<Name, string>> = {
      empty: join(setting.folder, 'queue-empty'),
      full: copyQueue(await fillQueue(setting), join(setting.folder, 'queue-full')),
    }
    const times: Record<Name, number[]> = { empty: [], full: [] }
    for (let round = 0; round < setting.rounds; round++)
      for (const name of rotated(NAMES, round)) {
        const settings = { relayhost: '', queue_directory: queues[name] }
        times[name].push(await firstAccept(() => startDaemon(setting, name, settings)))
      }
    return [
      { name: 'start → first accept, empty queue', unit: 'ms', target: null, values: times.empty },
      { name: 'start → first accept, a million', unit: 'ms', target: { most: MOST }, values: times.full },
    ]
  },
}
