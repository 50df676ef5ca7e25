/** Opens the schedules of a relay: the runner with its work. The daemon and the test kit give them their ports. */
import type { DomainReport } from '../domain-check/domain-report.ts'
import { attentionOf } from '../queue/attention.ts'
import type { Operations } from '../queue/operations.ts'
import { readStatus, type LiveStatus } from '../queue/queue-status.ts'
import { answerQuestion } from '../relay/domain-question.ts'
import type { Relay } from '../relay/relay.ts'
import { statusJson } from '../resources/status-json.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { QueueStore } from '../store/queue-store.ts'
import { sumOfTraffic } from '../store/counts/traffic.ts'
import type { Clock, QueueTime } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import type { Random } from '../system/random.ts'
import type { Events } from '../telemetry/events.ts'
import { reportOf, type Report } from './report-text.ts'
import { ScheduleRunner, type BegunRun } from './schedule-runner.ts'
import { scheduledWork, type WorkPorts } from './scheduled-work.ts'

interface ScheduleParts {
  readonly relay: Relay
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly operations: () => Operations
  /** State in the memory of all nodes. */
  readonly live: () => Promise<LiveStatus>
  readonly clock: Clock
  readonly random: Random
  readonly net: Net
  readonly events: Events
  /** Name of this node. */
  readonly node: string
  readonly isShared: boolean
  readonly backup: WorkPorts['backup']
  readonly pause: () => Promise<void>
}

export function openSchedules(parts: ScheduleParts): ScheduleRunner {
  const { relay, reader, operations, clock, backup } = parts
  const work = scheduledWork({
    reader,
    clock,
    operations,
    backup,
    report: (since) => report(since, parts),
    mail: (mail) => relay.mailOperators(mail),
    checkDomain: (run, domain) => checkDomain(run, domain, parts),
  })
  return new ScheduleRunner({ ...parts, recorder: relay.recorder, tables: () => relay.config.schedule, work })
}

async function report(since: QueueTime, { relay, reader, clock, live }: ScheduleParts): Promise<Report> {
  const { minutes } = await reader.traffic(since)
  const schedules = relay.config.schedule
  const known = await live()
  const status = await readStatus({ reader, clock, schedules }, known)
  const attention = attentionOf(await relay.status.attention(reader), known)
  const { wall } = clock
  const facts = { name: relay.config.myhostname, since: wall.of(since), traffic: sumOfTraffic(minutes) }
  return reportOf({ ...facts, status: statusJson(status, wall), attention }, clock)
}

/** As `deferd check domain`, with mail of `myorigin`. The report is kept as that of an ordered check. */
async function checkDomain({ who, stopping }: BegunRun, domain: string, parts: ScheduleParts): Promise<DomainReport> {
  const { relay, store, clock, node } = parts
  const beganAt = clock.now()
  const { myorigin: sender } = relay.config
  const { json, ...found } = await answerQuestion({ domain, from: sender }, parts, stopping)
  const row = { domain, sender, orderedBy: who, node, beganAt, endedAt: clock.now(), failure: null, report: json }
  await store.records.domainChecks.keep(row)
  return found
}
