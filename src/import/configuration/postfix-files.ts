/** The files and programs of Postfix on this machine. */
import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import type { PostfixFiles } from './lookup-sources.ts'

const READABLE_BY_ALL = 0o004

export const postfixFiles: PostfixFiles = {
  read: (path) => orNull(() => readFileSync(path, 'utf8')),
  changedAt: (path) => orNull(() => statSync(path).mtimeMs),
  isPrivate: (path) => orNull(() => (statSync(path).mode & READABLE_BY_ALL) === 0) ?? false,
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
