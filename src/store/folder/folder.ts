/** Creates folders that only their owner can use. */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { errorCode } from '../../system/caught-error.ts'

/**
 * Creates a folder and its missing parents, and syncs the parent of each new folder. Returns the new folders, the deepest first. Throws the
 * system error, or an error when something else has the name.
 */
export function makeFolder(directory: string): readonly string[] {
  const missing: string[] = []
  for (let path = resolve(directory); !existsSync(path); path = dirname(path)) missing.push(path)
  // mkdir of Node with `recursive` repeats itself for ever on a file system that refuses new names with ENOENT, such as /proc.
  for (const path of missing.toReversed()) makeOne(path)
  if (!statSync(directory).isDirectory()) throw new Error(`${directory} is not a folder: move the file away`)
  for (const path of missing) sync(dirname(path))
  return missing
}

/** Creates a folder, unless another process has just created it. */
function makeOne(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

function sync(folder: string): void {
  const fd = openSync(folder, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
