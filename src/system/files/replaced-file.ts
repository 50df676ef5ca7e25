/** Replaces a file as a whole: no reader finds half of it, and no crash or power failure leaves half of it or brings the former one back. */
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface FileTerms {
  /** Mode of the new file; the umask does not change it. */
  readonly mode: number
  /** Owner of the new file, where the process may give files away; null for that of the process. */
  readonly owner: { readonly uid: number; readonly gid: number } | null
}

/**
 * Writes a new file beside the former one, syncs it, puts it in its place, and syncs the folder. Rejects with the system error; the former file
 * is unchanged then, unless the sync of the folder failed.
 */
export async function replaceFile(path: string, text: string, { mode, owner }: FileTerms): Promise<void> {
  const partial = `${path}.partial`
  // Left by a process that was killed. A link that another user has put there is not followed.
  await rm(partial, { force: true })
  try {
    const file = await open(partial, 'wx', 0o600)
    try {
      await file.writeFile(text)
      if (owner !== null && owner.uid !== process.getuid?.()) await file.chown(owner.uid, owner.gid)
      await file.chmod(mode)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(partial, path)
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
