/** Writes a converted configuration. deferd.toml is written last, so that a repetition after a crash writes all files again. */
import { chmodSync, chownSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import type { ConvertedConfiguration } from './conversion.ts'
import type { ConvertedFile } from './configuration-draft.ts'

/** A file exists, or cannot be written (EX_CANTCREAT). */
class CannotWrite extends Error {
  override readonly name = 'CannotWrite'
  readonly exitCode = 73
}

interface WriteOptions {
  /** True to replace existing files. */
  readonly force: boolean
  /** True for an existing file that is replaced all the same. */
  readonly replaces: (path: string) => boolean
  /** User of the daemon, who becomes the owner of the private files; null for the user of the process. */
  readonly owner: { readonly uid: number; readonly gid: number } | null
}

const READABLE_BY_ALL = 0o004

/** Writes the files and returns their paths. Throws CannotWrite, without a change, when a file has other content, except with `force`. */
export function writeConfiguration(
  path: string,
  { toml, files }: ConvertedConfiguration,
  { force, owner, replaces }: WriteOptions,
): readonly string[] {
  const all: readonly ConvertedFile[] = [...files, { path, text: toml, mode: 0o644 }]
  const other = all.find((file) => !force && (currentText(file.path) ?? file.text) !== file.text && !replaces(file.path))
  if (other !== undefined)
    throw new CannotWrite(`${other.path} exists, and the import would write another file there: move it away, or use --force`)
  for (const file of all) write(file, owner)
  return all.map((file) => file.path)
}

function currentText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw new CannotWrite(`cannot read ${path}: ${errorMessage(error)}`, { cause: error })
  }
}

function write({ path, text, mode }: ConvertedFile, owner: WriteOptions['owner']): void {
  try {
    mkdirSync(dirname(path), { recursive: true })
    // No reader finds a partial file, even after a crash.
    const partial = `${path}.partial`
    rmSync(partial, { force: true })
    writeFileSync(partial, text, { mode, flag: 'wx', flush: true })
    chmodSync(partial, mode)
    if (owner !== null && (mode & READABLE_BY_ALL) === 0) chownSync(partial, owner.uid, owner.gid)
    renameSync(partial, path)
  } catch (cause) {
    throw new CannotWrite(`cannot write ${path}: ${errorMessage(cause)}`, { cause })
  }
}
