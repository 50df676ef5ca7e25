/** Path of the control socket of a queue. */
import { join, relative } from 'node:path'

/** Absolute or relative path, whichever is shorter, because a Unix socket address holds only 107 bytes (unix(7)). */
export function controlPath(queueDirectory: string): string {
  const path = join(queueDirectory, 'deferd.sock')
  const fromHere = relative(process.cwd(), path)
  return fromHere.length < path.length ? fromHere : path
}
