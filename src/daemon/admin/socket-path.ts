/** Paths by which commands find the daemon of a queue directory. */
import { join, relative } from 'node:path'

/** Absolute or relative path, whichever is shorter, because a Unix socket address holds only 107 bytes (unix(7)). */
function socketPath(queueDirectory: string, name: string): string {
  const path = join(queueDirectory, name)
  const fromHere = relative(process.cwd(), path)
  return fromHere.length < path.length ? fromHere : path
}

/** The socket of the admin API, which commands use, and of the page. */
export const adminSocketPath = (queueDirectory: string): string => socketPath(queueDirectory, 'admin.sock')

/** The file by which commands prove themselves to the daemon. */
export const localTokenPath = (queueDirectory: string): string => join(queueDirectory, 'local.token')

/** The socket by which `sendmail` wakes the daemon. */
export const pickupPath = (queueDirectory: string): string => socketPath(queueDirectory, 'pickup.sock')
