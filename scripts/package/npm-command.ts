/** Runs npm(1): the one that runs this program, or that of the search path. */
import { execFileSync } from 'node:child_process'

/** Throws with the standard error of npm when it fails. */
export function npm(...args: readonly string[]): void {
  const own = process.env['npm_execpath']
  const [program, first] = own === undefined ? ['npm', []] : [process.execPath, [own]]
  execFileSync(program, [...first, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
}
