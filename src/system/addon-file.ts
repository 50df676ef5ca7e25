/**
 * The library of SQLite as a file of this user, whose content is compared at each start. No file that another user could have
 * written is loaded.
 */
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync, type Stats } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { threadId } from 'node:worker_threads'
import { errorCode, errorMessage } from './caught-error.ts'

/** The library of SQLite cannot be loaded safely. */
export class AddonUnusable extends Error {
  override readonly name = 'AddonUnusable'
  readonly exitCode = 78
}

const ELSEWHERE = 'set DEFERD_NATIVE_DIR to a folder of this user'

/** Runs an action. Throws AddonUnusable when the system refuses it. */
function attempt<T>(what: string, action: () => T): T {
  try {
    return action()
  } catch (cause) {
    if (cause instanceof AddonUnusable) throw cause
    throw new AddonUnusable(`${what}: ${errorMessage(cause)}; ${ELSEWHERE}`, { cause })
  }
}

/** Loads the library. Throws AddonUnusable with the reason of the system, such as a file system without execution, or an old libc. */
export const loadAddon = (path: string, library: { exports: object }): void =>
  attempt(`cannot load the library of SQLite from ${path}`, () => process.dlopen(library, path))

/** The folder for the library: that of DEFERD_NATIVE_DIR, or `~/.cache/deferd`. Throws AddonUnusable without both. */
export function addonFolder(env: { readonly [name: string]: string | undefined }): string {
  const named = env['DEFERD_NATIVE_DIR'] ?? ''
  if (named !== '') return resolve(named)
  const home = attempt('cannot find the home folder for the library of SQLite', homedir)
  if (!isAbsolute(home)) throw new AddonUnusable(`cannot find the home folder for the library of SQLite: HOME is "${home}"; ${ELSEWHERE}`)
  return join(home, '.cache/deferd')
}

/** Whether a file or folder is of another user, or another user may change it. */
const isForeign = ({ uid, mode }: Stats): boolean => uid !== process.geteuid?.() || (mode & 0o022) !== 0

/** Path of a file of this user in the folder that has the content. Creates both when they are absent. Throws AddonUnusable. */
export function addonFile(content: Uint8Array, folder: string): string {
  const path = join(folder, `better_sqlite3-${createHash('sha256').update(content).digest('hex').slice(0, 16)}.node`)
  attempt(`cannot write the library of SQLite to ${folder}`, () => {
    for (const one of [dirname(folder), folder]) makeFolder(one)
    const stats = lstatSync(folder)
    if (!stats.isDirectory() || isForeign(stats))
      throw new AddonUnusable(`${folder} is of another user, or others may write there, so that no library is loaded from it: ${ELSEWHERE}`)
    if (!existsSync(path)) write(path, content)
  })
  if (!attempt(`cannot read ${path}`, () => isAs(path, content)))
    throw new AddonUnusable(
      `${path} is of another user, or is not the library of SQLite that deferd has written, and is not loaded: remove it`,
    )
  return path
}

/** Creates a folder for this user only, unless it exists. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

/** Writes a file, which has its name only when its content is on disk. */
function write(path: string, content: Uint8Array): void {
  // Threads write at the same time. A process that was killed may have left a file with the same numbers.
  const partial = `${path}.${process.pid}.${threadId}`
  rmSync(partial, { force: true })
  try {
    writeFileSync(partial, content, { flag: 'wx', mode: 0o600, flush: true })
    renameSync(partial, path)
  } catch (error) {
    rmSync(partial, { force: true })
    throw error
  }
}

/** Whether the path is a file of this user with the content. A link is none. */
function isAs(path: string, content: Uint8Array): boolean {
  const stats = lstatSync(path)
  return stats.isFile() && !isForeign(stats) && readFileSync(path).equals(content)
}
