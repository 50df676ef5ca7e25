/** Opens the schedules of a relay: the runner with its work. The daemon and the test kit give them their ports. */
import { openRoutingTables } from '../delivery/routing/routing-tables.ts'
import { loadDkimKeys } from '../dkim/keys.ts'
import { gatherFacts } from '../domain-check/domain-facts.ts'
import { domainReport, type DomainReport } from '../domain-check/domain-report.ts'
import type { Operations } from '../queue/operations.ts'
import { readStatus } from '../queue/queue-status.ts'
import type { Relay } from '../relay/relay.ts'
import { statusJson } from '../resources/status-json.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { QueueStore } from '../store/queue-store.ts'
import { sumOfTraffic } from '../store/traffic.ts'
import type { Clock, QueueTime } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import type { Random } from '../system/random.ts'
import type { Events } from '../telemetry/events.ts'
import { reportOf, type Report } from './report-text.ts'
import { ScheduleRunner } from './schedule-runner.ts'
import { scheduledWork, type WorkPorts } from './scheduled-work.ts'

interface ScheduleParts {
  readonly relay: Relay
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly operations: () => Operations
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
    checkDomain: (domain) => checkDomain(domain, parts),
  })
  return new ScheduleRunner({ ...parts, recorder: relay.recorder, tables: () => relay.config.schedule, work })
}

async function report(since: QueueTime, { relay, reader, clock }: ScheduleParts): Promise<Report> {
  const { minutes } = await reader.traffic(since)
  const schedules = relay.config.schedule
  const status = await readStatus({ reader, clock, schedules }, await relay.status.glance())
  const attention = await relay.status.attention(reader)
  const { wall } = clock
  const facts = { name: relay.config.myhostname, since: wall.of(since), traffic: sumOfTraffic(minutes) }
  return reportOf({ ...facts, status: statusJson(status, wall), attention }, clock)
}

/** As `deferd check domain`, with mail of `myorigin`. */
async function checkDomain(domain: string, { relay, reader, net, clock, random }: ScheduleParts): Promise<DomainReport> {
  const { config, secrets = {}, routingTables, dkimKeys } = relay.settings
  const { stsPolicies, providerMembers, providers } = reader.records
  const facts = await gatherFacts(domain, config.myorigin, {
    config,
    secrets,
    routingTables: routingTables ?? openRoutingTables(config).tables,
    dkimKeys: dkimKeys ?? loadDkimKeys(config),
    net,
    clock,
    random,
    policyOf: (name) => stsPolicies.of(name),
    providerOf: async (name) => (await providerMembers.providerOf(name)) ?? null,
    effectsOf: async (provider) => (await providers.all()).find((one) => one.provider === provider)?.effects ?? [],
    destination: async (name) => ({
      live: relay.scheduler.destinations.status(name),
      record: (await reader.destinationRecords()).find((one) => one.name === name),
    }),
  })
  return domainReport(facts, config)
}
