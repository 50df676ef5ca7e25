/** Paths of the sockets in a queue directory. */
import { join, relative } from 'node:path'

/** Absolute or relative path, whichever is shorter, because a Unix socket address holds only 107 bytes (unix(7)). */
function socketPath(queueDirectory: string, name: string): string {
  const path = join(queueDirectory, name)
  const fromHere = relative(process.cwd(), path)
  return fromHere.length < path.length ? fromHere : path
}

/** The socket of commands. */
export const controlPath = (queueDirectory: string): string => socketPath(queueDirectory, 'deferd.sock')

/** The socket of the admin API and the page. */
export const adminSocketPath = (queueDirectory: string): string => socketPath(queueDirectory, 'admin.sock')

/** The socket by which `sendmail` wakes the daemon. */
export const pickupPath = (queueDirectory: string): string => socketPath(queueDirectory, 'pickup.sock')
