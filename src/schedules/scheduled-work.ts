/** The work of the `[schedule.NAME]` tables, done by the parts that also serve operators. */
import type { DomainReport } from '../domain-check/domain-report.ts'
import type { ScheduledAction } from '../config/values/tables/schedule-table.ts'
import type { DestinationName } from '../mail/message.ts'
import { patternMatcher } from '../patterns/filter-pattern.ts'
import { plural } from '../presentation/text.ts'
import { ANY_QUEUE } from '../queue/operation-request.ts'
import type { Operations } from '../queue/operations.ts'
import { busyDestinations } from '../store/busy-destinations.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import type { OperatorMail } from '../relay/operator-mail.ts'
import { DAY, type Clock, type Duration, type QueueTime } from '../system/clock.ts'
import type { Report } from './report-text.ts'
import type { BegunRun, RunEnd } from './schedule-runner.ts'

export type BackupAction = Extract<ScheduledAction, { readonly do: 'backup' }>

export interface WorkPorts {
  readonly reader: QueueReader
  readonly clock: Clock
  readonly operations: () => Operations
  readonly backup: (run: BegunRun, action: BackupAction) => Promise<RunEnd>
  /** The report since an instant. */
  readonly report: (since: QueueTime) => Promise<Report>
  /** Queues a report. */
  readonly mail: (mail: OperatorMail) => Promise<void>
  readonly checkDomain: (run: BegunRun, domain: string) => Promise<DomainReport>
}

/** A first report is about this time. */
const FIRST_REPORT: Duration = DAY

/** Begin of the `by` of a suspension by a table. */
const BY_SCHEDULE = 'schedule '

/** Does the work of a run. An error is the reason of a failure. */
export const scheduledWork =
  (ports: WorkPorts) =>
  async (run: BegunRun): Promise<RunEnd> => {
    const { action } = run.table
    switch (action.do) {
      case 'backup':
        return ports.backup(run, action)
      case 'report':
        return report(run, action.notify, ports)
      case 'suspend':
        return suspend(run, action, ports)
      case 'resume':
        return resume(run, action.destinations, ports)
      case 'flush':
        return flush(run, action.destinations, ports)
      case 'check domain':
        return checkDomains(run, action.domains, ports)
    }
  }

const done = (text: string, changed: number): RunEnd => ({ outcome: 'done', text, changed })

async function report(
  { table }: BegunRun,
  recipients: readonly string[],
  { reader, clock, report: make, mail }: WorkPorts,
): Promise<RunEnd> {
  const runs = await reader.records.scheduleRuns.of(table.name)
  const last = runs.findLast(({ outcome }) => outcome === 'done')
  await mail({ ...(await make(last?.endedAt ?? clock.now() - FIRST_REPORT)), recipients })
  return done(`report queued for ${recipients.join(', ')}`, recipients.length)
}

/** The destinations that are named, and the known ones that a pattern matches. */
async function named(patterns: readonly string[], { reader, operations }: WorkPorts): Promise<readonly DestinationName[]> {
  const exact = patterns.filter((pattern) => !pattern.includes('*')).map((name) => name.toLowerCase())
  const matchers = patterns.filter((pattern) => pattern.includes('*')).map(patternMatcher)
  const found = new Set<DestinationName>(exact)
  const add = (name: DestinationName): void => {
    if (matchers.some((matches) => matches(name))) found.add(name)
  }
  if (matchers.length === 0) return [...found]
  for (const { destination } of operations().destinations()) add(destination)
  for (const { name } of await reader.destinationRecords()) add(name)
  for await (const destination of busyDestinations(reader)) add(destination)
  return [...found].toSorted()
}

/** Suspends the destinations, except those that an operator has suspended. */
async function suspend(
  { table, who, requestId }: BegunRun,
  { destinations: patterns, duration }: Extract<ScheduledAction, { readonly do: 'suspend' }>,
  ports: WorkPorts,
): Promise<RunEnd> {
  const { reader, operations } = ports
  const by = new Map((await reader.destinationRecords()).map(({ name, suspension }) => [name, suspension?.by]))
  let changed = 0
  for (const name of await named(patterns, ports)) {
    if (by.get(name)?.startsWith(BY_SCHEDULE) === false) continue
    const reason = who === `${BY_SCHEDULE}${table.name}` ? null : `ordered by ${who}`
    await operations().suspend(name, { who: `${BY_SCHEDULE}${table.name}`, requestId, duration, reason })
    changed++
  }
  return done(`${plural(changed, 'destination')} suspended`, changed)
}

/** Resumes the destinations that a table has suspended. */
async function resume(run: BegunRun, patterns: readonly string[], { reader, operations }: WorkPorts): Promise<RunEnd> {
  const matchers = patterns.map(patternMatcher)
  let changed = 0
  for (const { name, suspension } of await reader.destinationRecords()) {
    if (suspension?.by.startsWith(BY_SCHEDULE) !== true || !matchers.some((matches) => matches(name))) continue
    await operations().resume(name, run)
    changed++
  }
  return done(`${plural(changed, 'destination')} resumed`, changed)
}

async function flush({ who, requestId }: BegunRun, patterns: readonly string[], { operations }: WorkPorts): Promise<RunEnd> {
  let changed = 0
  for (const destination of patterns) {
    const selection = { kind: 'filter', filter: { ...ANY_MESSAGE, destination }, limit: null } as const
    const summary = await operations().perform({ operation: 'flush', selection, ...ANY_QUEUE, dryRun: false, who, requestId })
    changed += summary.changed
  }
  return done(`${plural(changed, 'message')} flushed`, changed)
}

async function checkDomains(run: BegunRun, domains: readonly string[], { checkDomain }: WorkPorts): Promise<RunEnd> {
  const wrong: string[] = []
  for (const domain of domains) {
    const { verdict, findings, mail } = await checkDomain(run, domain)
    if (verdict === 'ok') continue
    const worst = [...findings, { ...mail, what: 'mail' }].filter((one) => one.verdict === verdict)
    wrong.push(`${domain}: ${worst.map(({ what, text }) => `${what}: ${text}`).join('; ')}`)
  }
  const checked = `${plural(domains.length, 'domain')} checked`
  if (wrong.length === 0) return done(`${checked}: all is good`, domains.length)
  return { outcome: 'failed', text: `${wrong.join('. ')}; deferd check domain NAME has all findings`, changed: domains.length }
}
