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

/** Mistakes of an expression, in the words of node-cron; empty for a valid one. */
export const cronMistakes = (text: string): readonly string[] =>
  nodeCron()
    .validateDetailed(text)
    .errors.map(({ message }) => message)

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
