/**
 * Recognizes secrets that Kubernetes, Docker or systemd mounts: on a read-only file system in memory. Every user of the container may
 * read such a file (mode 0444 or 0644) and nobody can change its mode, so that a warning would have no remedy.
 */
import { readFileSync, realpathSync } from 'node:fs'

const IN_MEMORY: ReadonlySet<string> = new Set(['tmpfs', 'ramfs'])

/** mountinfo of proc(5): the mount point, the options and the type of the file system. */
const MOUNT = /^\S+ \S+ \S+ \S+ (?<at>\S+) (?<options>\S+) .*?- (?<type>\S+) /

const decoded = (text: string): string => text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)))

/** Whether the absolute path without links is on a read-only file system in memory, by the table of mounts. */
export function isMountedSecretIn(path: string, mounts: string): boolean {
  let found = { length: 0, isSecret: false }
  for (const line of mounts.split('\n')) {
    const { at = '', options = '', type = '' } = MOUNT.exec(line)?.groups ?? {}
    const point = decoded(at)
    // A later mount hides an earlier one at the same point.
    const isAbove = path === point || path.startsWith(point.endsWith('/') ? point : `${point}/`)
    if (at === '' || !isAbove || point.length < found.length) continue
    found = { length: point.length, isSecret: IN_MEMORY.has(type) && options.split(',').includes('ro') }
  }
  return found.isSecret
}

export function isMountedSecret(path: string): boolean {
  try {
    return isMountedSecretIn(realpathSync(path), readFileSync('/proc/self/mountinfo', 'utf8'))
  } catch {
    // Without /proc, or without the file, no mount is known.
    return false
  }
}
