/** Runs the steps of a release in their order, stops at the first that fails, and records each. */
import { errorMessage } from '../../src/system/caught-error.ts'

export interface Step {
  readonly name: string
  /** Returns the facts found, in words. Throws a sentence when the release cannot go on. */
  readonly run: () => string
}

export interface StepRecord {
  readonly step: string
  readonly exit: 0 | 1
  /** Seconds. */
  readonly seconds: number
  /** Facts found, or the reason of the stop. */
  readonly result: string
}

export function runSteps(steps: readonly Step[], ended: (record: StepRecord) => void): readonly StepRecord[] {
  const records: StepRecord[] = []
  for (const { name, run } of steps) {
    const begin = performance.now()
    const record = (exit: 0 | 1, result: string): void => {
      const one = { step: name, exit, seconds: Math.round((performance.now() - begin) / 10) / 100, result }
      records.push(one)
      ended(one)
    }
    try {
      record(0, run())
    } catch (error) {
      record(1, errorMessage(error))
      return records
    }
  }
  return records
}
