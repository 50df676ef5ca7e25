/** Where the control socket of a queue lies. */
import { join, relative } from 'node:path'

/** The shorter way to it, since the system allows a hundred-odd bytes only. */
export function controlPath(queueDirectory: string): string {
  const path = join(queueDirectory, 'deferd.sock')
  const near = relative(process.cwd(), path)
  return near.length < path.length ? near : path
}
