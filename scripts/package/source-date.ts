/** The time of what is built from a commit. */
import { execFileSync } from 'node:child_process'

function commitTime(root: string): string {
  try {
    return execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch (cause) {
    throw new Error(`${root} is no checkout of git, which has the time of the commit: set SOURCE_DATE_EPOCH to it`, { cause })
  }
}

/** SOURCE_DATE_EPOCH, or the time of the last commit, in seconds since the epoch. Throws without both. */
export const sourceDate = (root: string): number => Number(process.env['SOURCE_DATE_EPOCH'] ?? commitTime(root))
