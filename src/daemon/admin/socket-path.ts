/** Paths by which commands find the daemon of a queue directory. */
import { join, relative } from 'node:path'

/** Maximum length of the path of a Unix socket in bytes: `sun_path` has 108 on Linux (unix(7)), 104 on macOS (sys/un.h), each with a final null byte. */
export const socketPathLimit = (platform: NodeJS.Platform = process.platform): number => (platform === 'darwin' ? 103 : 107)

/** Absolute or relative path, whichever is shorter, because a socket address has little room. */
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
