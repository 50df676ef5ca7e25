/**
 * A relay with a store that keeps nothing, to measure what durability costs: the same program otherwise, the log
 * included. Mail that cannot be delivered at once is lost. Takes `-o name=value` as `deferd start` does.
 *
 *   node scripts/relay-without-store.ts -o smtpd_listen=127.0.0.1:2525 -o relayhost=[127.0.0.1]:2526
 */
import { parseArgs } from 'node:util'
import { loadTemplates } from '../src/bounce/templates.ts'
import { loadConfig } from '../src/config/load.ts'
import { Relay } from '../src/relay/relay.ts'
import type { QueueStore } from '../src/store/queue-store.ts'
import { intercepted } from '../src/store/methods.ts'
import { openMemoryStore } from '../src/store/memory/memory-store.ts'
import { systemClock } from '../src/system/system-clock.ts'
import { realClock } from '../test/support/real-clock.ts'
import { SystemNet } from '../src/system/system-net.ts'
import { systemRandom } from '../src/system/system-random.ts'
import { Events } from '../src/telemetry/events.ts'
import { openLog } from '../src/telemetry/log.ts'

/** A queue in memory that no mail enters. */
const keepsNothing = (): QueueStore =>
  intercepted(openMemoryStore().store, (method, _, perform) => {
    if (method === 'enqueue' || method === 'stage') return Promise.resolve()
    if (method === 'settle') return Promise.resolve({ removed: true, noticeDue: false })
    return method === 'report' ? Promise.resolve({ removed: true, entered: true }) : perform()
  })

const { values } = parseArgs({ allowPositionals: true, options: { option: { type: 'string', short: 'o', multiple: true } } })
const { config, written } = loadConfig({ env: {}, overrides: values.option ?? [], uid: 1000, calledAs: 'deferd' })
const events = new Events(() => systemClock.now())
const log = openLog({
  format: config.log_format,
  syslogName: config.syslog_name,
  host: 'localhost',
  pid: process.pid,
  clock: systemClock,
  write: (text) => void process.stderr.write(text),
})
events.listen(log.listen)
const relay = new Relay({
  config,
  templates: loadTemplates({ config, written }).templates,
  clock: realClock,
  random: systemRandom,
  net: new SystemNet(),
  store: keepsNothing(),
  events,
})
await relay.listen()
await relay.start()
process.once('SIGTERM', () => {
  void relay.stop(1_000).then(() => process.exit(0))
})
