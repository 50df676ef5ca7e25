/** The file of `deferd record`: complete or absent, readable by its owner only. */
import { existsSync } from 'node:fs'
import { link, open, rename, rm } from 'node:fs/promises'
import { errorCode, errorMessage } from '../../../system/caught-error.ts'
import { CommandError, EX } from '../../shell/exit.ts'

const refused = (path: string): CommandError =>
  new CommandError(EX.cannotCreate, `${path} exists: name another file with --out, or add --force to replace it`)

/** Throws CommandError for a file that exists, unless it may be replaced. */
export function assertFree(path: string, mayReplace: boolean): void {
  if (!mayReplace && existsSync(path)) throw refused(path)
}

interface SessionFile {
  readonly path: string
  readonly mayReplace: boolean
  /** Process that writes the file. */
  readonly pid: number
}

/** Writes the file with mode 0600. Rejects with CommandError for one that exists, unless it may be replaced, and for a failure of the system. */
export async function writeSessionFile(text: string, { path, mayReplace, pid }: SessionFile): Promise<void> {
  const draft = `${path}.${pid}`
  try {
    await using file = await open(draft, 'wx', 0o600)
    await file.writeFile(text)
    await file.sync()
    if (mayReplace) await rename(draft, path)
    else await link(draft, path)
  } catch (cause) {
    if (errorCode(cause) === 'EEXIST') throw refused(path)
    throw new CommandError(EX.cannotCreate, `cannot write ${path}: ${errorMessage(cause)}`, { cause })
  } finally {
    await rm(draft, { force: true })
  }
}
