/**
 * The adapter of node-cron, which validates, parses and matches cron expressions. Its tasks are never started, because they read the
 * clock of the machine.
 */
import { createRequire } from 'node:module'
import type NodeCron from 'node-cron'
import type { ParsedFields } from 'node-cron'
import type { WallTime } from '../clock.ts'

// Loaded at first use, because that takes 30 ms and most configurations have no schedule.
let loaded: typeof NodeCron | undefined
const nodeCron = (): typeof NodeCron => (loaded ??= createRequire(import.meta.url)('node-cron') as typeof NodeCron)

/** Fields by their keys in node-cron, with the values that they take. */
const FIELDS: ReadonlyMap<string, { readonly name: string; readonly values: string }> = new Map([
  ['second', { name: 'second', values: '0 to 59' }],
  ['minute', { name: 'minute', values: '0 to 59' }],
  ['hour', { name: 'hour', values: '0 to 23' }],
  ['dayOfMonth', { name: 'day of month', values: '1 to 31, L for the last, L-3 or 15W' }],
  ['month', { name: 'month', values: '1 to 12 or jan to dec' }],
  ['dayOfWeek', { name: 'day of week', values: '0 to 7 (0 and 7 are Sunday), mon to sun, 5L or 1#2' }],
])

/** Fields of an expression of five; a sixth one before them is the second. */
const FIVE = [...FIELDS.values()].slice(1).map(({ name }) => name)

/** A mistake that is not in one field. */
function wholeMistake(text: string): string {
  const count = text.trim().split(/\s+/).length
  if (text.trim().startsWith('@') && count === 1)
    return `${JSON.stringify(text)} is unknown; write @hourly, @daily, @weekly, @monthly or @yearly`
  if (count === 5 || count === 6) return `${JSON.stringify(text)} has characters of no cron expression; write digits, names and * , - / # ?`
  return `${JSON.stringify(text)} has ${count} ${count === 1 ? 'field' : 'fields'}; write 5 fields (${FIVE.join(', ')}), or 6 with the second before them`
}

/** Mistakes of an expression, each with what to write in its place; empty for a valid one. */
export const cronMistakes = (text: string): readonly string[] =>
  nodeCron()
    .validateDetailed(text)
    .errors.map(({ field: key, value = '' }) => {
      const field = FIELDS.get(key)
      if (field === undefined) return wholeMistake(text)
      if (key === 'dayOfMonth' && nodeCron().validate(`0 0 ${value} * *`))
        return `the day ${value} is in no month of ${JSON.stringify(text)}; write a day that one of its months has`
      return `${JSON.stringify(value)} is no ${field.name}; write ${field.values}, a list (1,15), a range (1-5), a step (*/10), or *`
    })

function matcherOf(text: string, zone: string): (at: WallTime) => boolean {
  const task = nodeCron().createTask(text, () => undefined, { timezone: zone })
  // node-cron keeps a list of all tasks.
  void task.destroy()
  return (at) => task.match(new Date(at))
}

export class CronExpression {
  readonly text: string
  readonly zone: string
  readonly fields: ParsedFields
  /** True when the instant has a matching time in the zone. */
  readonly matches: (at: WallTime) => boolean
  /** True when a time of day and date matches, given as the instant at which UTC has it. The zone may not have the time at all. */
  readonly matchesWritten: (time: WallTime) => boolean

  /** Throws for an expression with mistakes. */
  constructor(text: string, zone: string) {
    this.text = text
    this.zone = zone
    this.fields = nodeCron().parse(text)
    this.matches = matcherOf(text, zone)
    this.matchesWritten = matcherOf(text, 'UTC')
  }
}
