/** The time of what is built from a commit. */
import { execFileSync } from 'node:child_process'

/** SOURCE_DATE_EPOCH, or the time of the last commit, in seconds since the epoch. */
export function sourceDate(root: string): number {
  const { SOURCE_DATE_EPOCH } = process.env
  return Number(SOURCE_DATE_EPOCH ?? execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }).trim())
}
