/** The part that a long suite runs: the one of the environment variable LONG_PART, or all of them. */
import { partNamed, SUBJECTS, type SubjectName } from './parts.ts'

export interface Portion {
  /** False when another subject of the suite is run. */
  readonly isIncluded: boolean
  /** Numbers of the first and the last run. */
  readonly from: number
  readonly to: number
}

/** The portion of a subject that is run. */
export function portion(subject: SubjectName, wanted = process.env['LONG_PART']): Portion {
  const range = { from: 1, to: SUBJECTS[subject].runs?.count ?? 1 }
  if (wanted === undefined || wanted === subject) return { isIncluded: true, ...range }
  const part = partNamed(wanted)
  if (part === null && !Object.hasOwn(SUBJECTS, wanted))
    throw new Error(`LONG_PART: ${JSON.stringify(wanted)} names no part of test/long/parts.ts`)
  return part?.subject === subject ? { isIncluded: true, ...(part.range ?? range) } : { isIncluded: false, ...range }
}
