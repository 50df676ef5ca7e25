/**
 * A relay with a store that keeps nothing, to measure what durability costs: the same program otherwise, the log
 * included. Mail that cannot be delivered at once is lost. Takes `-o name=value` as `deferd start` does.
 *
 *   node scripts/relay-without-store.ts -o smtpd_listen=127.0.0.1:2525 -o relayhost=[127.0.0.1]:2526
 */
import { parseArgs } from 'node:util'
import { loadTemplates } from '../src/bounce/templates.ts'
import { EMPTY_TALLY } from '../src/store/queue-tally.ts'
import { loadConfig } from '../src/config/load.ts'
import { Relay } from '../src/relay/relay.ts'
import type { QueueStore } from '../src/store/queue-store.ts'
import type { HeldRows } from '../src/store/records/record-table.ts'
import { recordCall, recordsOver } from '../src/store/records/records.ts'
import { systemClock } from '../src/system/system-clock.ts'
import { realClock } from '../test/support/real-clock.ts'
import { SystemNet } from '../src/system/system-net.ts'
import { systemRandom } from '../src/system/system-random.ts'
import { Events } from '../src/telemetry/events.ts'
import { openLog } from '../src/telemetry/log.ts'

const nothing = (): Promise<void> => Promise.resolve()

/** A store that accepts every call and keeps nothing. */
function keepsNothing(): QueueStore {
  let lastId = 0
  const rows: HeldRows = new Map()
  return {
    nextId: () => ++lastId,
    nextIds: async (count) => Array.from({ length: count }, () => ++lastId),
    shares: { countShares: async () => true, sharesElsewhere: async () => [], onShares: () => undefined },
    leaseTerms: () => ({ owner: 1, until: Infinity }),
    // Small records are kept in memory.
    records: recordsOver(async (...call) => recordCall(call).held(rows, ...call[2])),
    joinProvider: nothing,
    stage: nothing,
    unstage: nothing,
    enqueue: nothing,
    maildropFiles: () => Promise.resolve([]),
    forgetMaildropFiles: () => Promise.resolve(),
    readChunk: async () => undefined,
    endSchedules: () => Promise.resolve({ ended: [], next: null }),
    claimDue: async () => ({ requests: [], nextDueAt: null }),
    claimSuspect: async () => undefined,
    claimExpired: async () => [],
    giveBack: nothing,
    settle: async () => ({ removed: true, noticeDue: false }),
    quarantine: nothing,
    messagesWithNoticesDue: async () => [],
    noticesDueOf: async () => undefined,
    claimWarnings: async () => [],
    postponeWarning: nothing,
    markDelayNoticeDue: nothing,
    report: async () => ({ removed: true, entered: true }),
    scheduledMail: async () => [],
    destinationsDue: async () => [],
    nextDeadlines: async () => ({ expiresAt: null, warnAt: null }),
    destinations: async () => [],
    saveDestination: nothing,
    operate: async () => [],
    tally: async () => EMPTY_TALLY,
    outbox: {
      subscribe: async () => false,
      unsubscribe: async () => false,
      changeSecrets: async () => false,
      configureSubscriptions: async () => [],
      subscriptions: async () => [],
      wantedTypes: async () => [],
      numberEvents: async () => false,
      pullEvents: async () => null,
      saveProgress: async () => false,
      parkedDue: async () => [],
      settleParked: nothing,
      replayEvents: async () => null,
      recordEvents: nothing,
      pruneEvents: async () => ({ more: false }),
    },
    auditLog: { audit: async () => 0, beginOperation: async () => 0, endOperation: async () => true },
    upkeep: {
      saveClock: nothing,
      prune: async () => ({ more: false }),
      verify: async () => null,
      ping: nothing,
      freeSpace: async () => Infinity,
    },
    move: async () => [],
    close: nothing,
  }
}

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
