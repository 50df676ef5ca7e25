/**
 * Finds out whether the queue folder of a container lies outside the container: mail in the container's own files, or in memory, is lost with it. The
 * images set DEFERD_REQUIRE_VOLUME; elsewhere nothing is examined.
 */
import { statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { errorCode } from '../../system/caught-error.ts'

/** Facts of the system about mounted file systems. */
export interface MountedFiles {
  /** Number of the device of a file; null when there is no file. */
  readonly device: (path: string) => number | null
  /** Type of the file system of an existing file (statfs(2)). */
  readonly type: (path: string) => number
}

/** Types of file systems in memory: tmpfs and ramfs (statfs(2)). */
const IN_MEMORY: ReadonlySet<number> = new Set([0x01021994, 0x858458f6])

const systemFiles: MountedFiles = {
  device: (path) => {
    try {
      return statSync(path).dev
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return null
      throw error
    }
  },
  type: (path) => statfsSync(path).type,
}

/** Reason why mail in the folder would be lost with the container, with a remedy; null when it would not. Throws an error of the system. */
export function volumeProblem(directory: string, files: MountedFiles = systemFiles): string | null {
  let present = resolve(directory)
  while (files.device(present) === null && present !== dirname(present)) present = dirname(present)
  const isOwn = files.device(present) === files.device('/')
  if (!isOwn && !IN_MEMORY.has(files.type(present))) return null
  const fact = isOwn ? 'is not a volume' : 'is in memory'
  return `the queue directory ${directory} ${fact}: mail would be lost with the container; mount a volume (-v mail:${directory}), or set DEFERD_REQUIRE_VOLUME=0`
}
