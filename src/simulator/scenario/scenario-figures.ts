/** Totals, waits and curves of a scenario, computed from the recorded times. Pure. */
import { SECOND, type Duration } from '../../system/clock.ts'
import type { DestinationRecord, MailRecord, ScenarioResult, ShareRecord } from './scenario-record.ts'

export interface Waits {
  readonly mean: Duration
  readonly p50: Duration
  readonly p95: Duration
  readonly max: Duration
}

/** Statistics of the time from acceptance to delivery; null if no mail was delivered. */
export function waitsOf({ waits }: MailRecord): Waits | null {
  const sorted = waits.toSorted((a, b) => a - b)
  const max = sorted.at(-1)
  if (max === undefined) return null
  const at = (share: number): Duration => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? max
  return { mean: waits.reduce((sum, wait) => sum + wait, 0) / waits.length, p50: at(0.5), p95: at(0.95), max }
}

export const queuedOf = ({ accepted, delivered, bounced, expired }: MailRecord): number =>
  accepted.length - delivered.length - bounced.length - expired.length

const attemptsOf = ({ delivered, failed }: MailRecord): number => delivered.length + failed.length

/** Time of the last delivery; null if there was none. */
export const lastDelivery = ({ delivered }: MailRecord): Duration | null => delivered.at(-1) ?? null

export interface Totals {
  readonly messages: number
  readonly recipients: number
  readonly delivered: number
  readonly bounced: number
  readonly expired: number
  readonly queued: number
  readonly attempts: number
  readonly failed: number
}

export function totalsOf(records: readonly MailRecord[]): Totals {
  const sum = (value: (record: MailRecord) => number): number => records.reduce((total, record) => total + value(record), 0)
  return {
    messages: sum(({ messages }) => messages),
    recipients: sum(({ accepted }) => accepted.length),
    delivered: sum(({ delivered }) => delivered.length),
    bounced: sum(({ bounced }) => bounced.length),
    expired: sum(({ expired }) => expired.length),
    queued: sum(queuedOf),
    attempts: sum(attemptsOf),
    failed: sum(({ failed }) => failed.length),
  }
}

/** The name of a share for people. */
export const shareName = ({ class: name, key }: ShareRecord): string =>
  name === null ? key || '(none)' : key === '' ? name : `${key} (${name})`

/** Curves of mail over time, in equal steps. */
export interface Curves {
  /** Middle of each step. */
  readonly times: readonly Duration[]
  /** Recipients in the queue at the end of each step. */
  readonly waiting: readonly number[]
  /** Deliveries in each step. */
  readonly delivered: readonly number[]
  /** Failed attempts in each step. */
  readonly failed: readonly number[]
  /** Largest window in each step; 0 for mail of several destinations. */
  readonly window: readonly number[]
}

export function curvesOf(record: MailRecord & Partial<Pick<DestinationRecord, 'windows'>>, ended: Duration, steps: number): Curves {
  const width = Math.max(1, ended) / steps
  const stepOf = (at: Duration): number => Math.min(steps - 1, Math.floor(at / width))
  const count = (...lists: readonly (readonly Duration[])[]): number[] => {
    const counts = Array.from({ length: steps }, () => 0)
    for (const times of lists) for (const at of times) counts[stepOf(at)] = (counts[stepOf(at)] ?? 0) + 1
    return counts
  }
  const delivered = count(record.delivered)
  const gone = count(record.delivered, record.bounced, record.expired)
  let inside = 0
  const waiting = count(record.accepted).map((came, i) => (inside += came - (gone[i] ?? 0)))
  return {
    times: waiting.map((_, i) => (i + 0.5) * width),
    waiting,
    delivered,
    failed: count(record.failed),
    window: windowCurve(record.windows ?? [], steps, stepOf),
  }
}

/** Largest window in each step. The window keeps its value between changes. */
function windowCurve(windows: DestinationRecord['windows'], steps: number, stepOf: (at: Duration) => number): readonly number[] {
  let next = 0
  let now = 0
  return Array.from({ length: steps }, (_, step) => {
    let largest = now
    for (let change = windows[next]; change !== undefined && stepOf(change.at) <= step; change = windows[++next]) {
      now = change.window
      largest = Math.max(largest, now)
    }
    return largest
  })
}

const inSeconds = (duration: Duration | null): number | null => (duration === null ? null : Math.round(duration) / SECOND)

function waitsJson(record: MailRecord): object | null {
  const waits = waitsOf(record)
  return waits && { mean: inSeconds(waits.mean), p50: inSeconds(waits.p50), p95: inSeconds(waits.p95), max: inSeconds(waits.max) }
}

/** Result for `--json`. docs/choosing-retry-settings.md explains the members. Times are in seconds since the start of the scenario. */
export function scenarioJson({ destinations, shares, notices, ended }: ScenarioResult, name: string, seed: number): object {
  const mailJson = (record: MailRecord): object => {
    const { messages: _, ...totals } = totalsOf([record])
    return { ...totals, wait: waitsJson(record), last_delivery: inSeconds(lastDelivery(record)) }
  }
  return {
    scenario: name,
    seed,
    ended: inSeconds(ended),
    ...totalsOf(destinations),
    notices,
    destinations: destinations.map((record) => ({
      destination: record.destination,
      ...mailJson(record),
      deaths: record.deaths,
      largest_window: record.windows.reduce((most, { window }) => Math.max(most, window), 0),
    })),
    ...(shares.length === 0
      ? {}
      : { shares: shares.map((record) => ({ class: record.class, key: record.key, weight: record.weight, ...mailJson(record) })) }),
  }
}
