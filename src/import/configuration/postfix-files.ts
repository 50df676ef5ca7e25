/** The files and programs of Postfix on this machine. */
import { execFileSync } from 'node:child_process'
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { PostfixFiles } from './lookup-sources.ts'

const READABLE_BY_ALL = 0o004
const PASSED_BY_ALL = 0o001

/** True when not every user may read the file: by its mode, or by that of a folder above it, such as /etc/letsencrypt/archive. */
function isPrivate(path: string): boolean {
  if ((statSync(path).mode & READABLE_BY_ALL) === 0) return true
  return [path, realpathSync(path)].some((one) => foldersOf(one).some((folder) => (statSync(folder).mode & PASSED_BY_ALL) === 0))
}

const foldersOf = (path: string): readonly string[] => (dirname(path) === path ? [] : [dirname(path), ...foldersOf(dirname(path))])

export const postfixFiles: PostfixFiles = {
  read: (path) => orNull(() => readFileSync(path, 'utf8')),
  changedAt: (path) => orNull(() => statSync(path).mtimeMs),
  isPrivate: (path) => orNull(() => isPrivate(path)) ?? false,
  computed: (configDirectory, name) =>
    orNull(() =>
      execFileSync('postconf', ['-c', configDirectory, '-x', '-h', name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim(),
    ),
  dump: (type, path) =>
    orNull(() => execFileSync('postmap', ['-s', `${type}:${path}`], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })),
}

function orNull<T>(read: () => T): T | null {
  try {
    return read()
  } catch {
    // The caller reports the missing file, and continues without it.
    return null
  }
}
