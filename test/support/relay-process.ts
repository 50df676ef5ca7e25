/**
 * A relay in a process of its own that crashes at a failpoint: the parts of the real daemon, with a store that kills the process
 * (SIGKILL) before or after the n-th call of a method. Started by test/support/killable-relay.ts.
 */
import { loadTemplates } from '../../src/bounce/templates.ts'
import { configFrom } from '../../src/config/load.ts'
import { Relay } from '../../src/relay/relay.ts'
import { takeOwnership } from '../../src/store/folder/owner-lock.ts'
import { openWorkerStore } from '../../src/store/sqlite/clients/worker-store.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import { intercepted } from '../../src/store/methods.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { realClock } from './real-clock.ts'
import { SystemNet } from '../../src/system/system-net.ts'
import { systemRandom } from '../../src/system/system-random.ts'
import { Events } from '../../src/telemetry/events.ts'

/** `before enqueue 17`: crashes before the commit of the 17th message. */
interface Failpoint {
  readonly moment: string
  readonly method: string
  readonly nth: number
}

function parseFailpoint(text: string): Failpoint | null {
  const [moment = '', method = '', nth = ''] = text.split(' ')
  return text === '' ? null : { moment, method, nth: Number(nth) }
}

const die = (): void => {
  process.kill(process.pid, 'SIGKILL')
}

/** A store that kills its process at the failpoint. */
function deadly(store: QueueStore, failpoint: Failpoint): QueueStore {
  let calls = 0
  return intercepted(store, async (method, _, perform) => {
    if (method !== failpoint.method) return perform()
    const now = ++calls === failpoint.nth
    if (now && failpoint.moment === 'before') die()
    const result = await perform()
    if (now && failpoint.moment === 'after') die()
    return result
  })
}

const [failpointText = '', ...overrides] = process.argv.slice(2)
const { config, written } = configFrom({}, 'relay.example', { overrides })
const owner = takeOwnership(config.queue_directory)
// Keeps the ownership reachable: its lock ends when it is collected.
process.once('exit', () => owner.release())
const { store } = await openWorkerStore({ directory: config.queue_directory })
const failpoint = parseFailpoint(failpointText)
const relay = new Relay({
  config,
  clock: realClock,
  random: systemRandom,
  net: new SystemNet(),
  store: failpoint === null ? store : deadly(store, failpoint),
  events: new Events(() => systemClock.now()),
  templates: loadTemplates({ config, written }).templates,
})
const [listener] = await relay.listen()
await relay.start()
process.stdout.write(`${listener?.port}\n`)
process.once('SIGTERM', () => {
  void relay
    .stop(8_000)
    .then(() => store.close())
    .then(() => process.exit(0))
})
