/**
 * The judgement of a soak: its samples as figures with targets.
 */
import { percentile, type Figure } from '../figures/figure.ts'

/** State of the daemon in one second. */
export interface Second {
  /** VmRSS in MB. */
  readonly resident: number
  /** Size of the write-ahead log in MB. */
  readonly log: number
}

/** Counters and gauges of the daemon at the end of one period. */
export interface Scrape {
  /** 99th percentile of the event loop's delay since the scrape before, in ms. */
  readonly delay: number
  /** Messages in the queue. */
  readonly queued: number
  readonly accepted: number
  readonly delivered: number
  readonly deferred: number
  /** Bytes in use on the heap, in MB. */
  readonly heap: number
}

/** Reachable bytes of the daemon at the ends of the second and of the last third, in MB. */
export interface Reachable {
  readonly second: number
  readonly last: number
}

/** One line of the report. */
export interface Period extends Scrape {
  /** Seconds since the start. */
  readonly at: number
  readonly seconds: readonly Second[]
}

export interface Soak {
  readonly rate: number
  readonly periods: readonly Period[]
  readonly reachable: Reachable
  /** Times from connections to greetings, in ms. */
  readonly greetings: readonly number[]
  /** Messages that were accepted, and those that arrived, after the queue had become empty. */
  readonly accepted: number
  readonly arrived: number
}

const MOST_GROWTH = 5
const MOST_LOG = 64
/** Growth of the reachable bytes in the last third, in MB: the mail in memory varies less. */
const MOST_REACHABLE = 3
const MOST_DELAY = 50
/** Part of the rate below which the load was not the one that was asked for. */
const LEAST_RATE = 0.98

const HEAD = ['    time', 'RSS MB', 'heap MB', 'WAL MB', 'delay p99 ms', 'queued', 'accepted/s', 'delivered/s']
const WIDTHS = HEAD.map((name) => Math.max(name.length, 6))
const line = (cells: readonly string[]): string => cells.map((cell, n) => cell.padStart(WIDTHS[n] ?? 0)).join('  ')

export const soakHead = (): string => line(HEAD)

/** The line of a period; `before` is the one before it. */
export function soakLine(period: Period, before: Period | null): string {
  const time = period.at - (before?.at ?? 0)
  const rate = (name: 'accepted' | 'delivered'): string => ((period[name] - (before?.[name] ?? 0)) / time).toFixed(0)
  return line([
    clockOf(period.at),
    percentile(residents([period]), 0.5).toFixed(1),
    period.heap.toFixed(1),
    Math.max(...logs([period])).toFixed(1),
    period.delay.toFixed(1),
    period.queued.toFixed(0),
    rate('accepted'),
    rate('delivered'),
  ])
}

/** Hours and minutes, with seconds in short runs. */
function clockOf(seconds: number): string {
  const part = (size: number, base: number): string => String(Math.floor(seconds / size) % base).padStart(2, '0')
  return `${part(3_600, 1_000)}:${part(60, 60)}:${part(1, 60)}`
}

const residents = (periods: readonly Period[]): readonly number[] =>
  periods.flatMap(({ seconds }) => seconds.map(({ resident }) => resident))
const logs = (periods: readonly Period[]): readonly number[] => periods.flatMap(({ seconds }) => seconds.map(({ log }) => log))

/** The figures of a run. The first third is left out where the daemon may still grow. */
export function judgeSoak({ rate, periods, reachable, greetings, accepted, arrived }: Soak): readonly Figure[] {
  const [, second, last] = [0, 1, 2].map((n) =>
    periods.slice(Math.floor((n * periods.length) / 3), Math.floor(((n + 1) * periods.length) / 3)),
  )
  const resident = (third: readonly Period[] = []): number => percentile(residents(third), 0.5)
  const delays = periods.map(({ delay }) => delay)
  const end = periods.at(-1)
  const failed = end === undefined ? 0 : end.deferred / Math.max(1, end.deferred + end.delivered)
  const figure = (name: string, unit: string, value: number, target: Figure['target'] = null): Figure => ({
    name,
    unit,
    target,
    values: [value],
  })
  return [
    figure('RSS of the second third', 'MB', resident(second)),
    figure('RSS of the last third', 'MB', resident(last)),
    figure('RSS, last third − second', 'MB', resident(last) - resident(second), { most: MOST_GROWTH }),
    figure('reachable heap at the end of the second third', 'MB', reachable.second),
    figure('reachable heap, last third − second', 'MB', reachable.last - reachable.second, { most: MOST_REACHABLE }),
    figure('largest write-ahead log', 'MB', Math.max(0, ...logs(periods)), { most: MOST_LOG }),
    figure('event-loop delay p99 of a minute, median', 'ms', percentile(delays, 0.5)),
    figure('event-loop delay p99 of a minute, 95 of 100', 'ms', percentile(delays, 0.95), { most: MOST_DELAY }),
    figure('event-loop delay p99 of a minute, largest', 'ms', Math.max(0, ...delays)),
    figure('greeting p99', 'ms', percentile(greetings, 0.99)),
    figure('messages accepted per second', '', (end?.accepted ?? 0) / (end?.at ?? Number.NaN), { least: LEAST_RATE * rate }),
    figure('attempts that were deferred', '%', 100 * failed),
    figure('accepted messages that did not arrive', '', Math.max(0, accepted - arrived), { most: 0 }),
    figure('messages that arrived twice', '', Math.max(0, arrived - accepted), { most: 0 }),
  ]
}
