/**
 * Submits mail through the maildrop, the folder in which `sendmail` stores one file per message until a daemon queues it. The
 * format is defined in maildrop-file.ts. Any local user may write to the folder.
 */
import { constants } from 'node:fs'
import { mkdir, open, type FileHandle, type rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Envelope } from '../../mail/envelope.ts'
import { errorCode } from '../../system/caught-error.ts'
import { COMPLETE, encodeEnvelope, INCOMPLETE, splitEnvelope } from './maildrop-file.ts'
import { maildropFolder } from './maildrop-reader.ts'

/** Mode of the maildrop: other users may create files, but may neither list the folder nor remove files of others. */
const FOLDER_MODE = 0o1733
/**
 * Mode of the queue folder: other users may pass through to the maildrop. The other files of the queue have modes of their own.
 */
const QUEUE_MODE = 0o711

/** The functions of node:fs/promises that a submission uses. */
export interface SubmissionFiles {
  readonly open: typeof open
  readonly rm: typeof rm
}

/** Creates the maildrop folder. Only the owner of the queue may call this. */
export async function prepareMaildrop(queueDirectory: string): Promise<void> {
  const path = maildropFolder(queueDirectory)
  const isNew = (await mkdir(path, { recursive: true })) !== undefined
  // Sets the mode with fchmod, because the umask restricts the mode of mkdir. O_NOFOLLOW refuses a symbolic link.
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    await folder.chmod(FOLDER_MODE)
  } finally {
    await folder.close()
  }
  const parent = await open(queueDirectory, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    const { mode } = await parent.stat()
    if ((mode & QUEUE_MODE) !== QUEUE_MODE) await parent.chmod((mode & 0o777) | QUEUE_MODE)
    if (isNew) await parent.sync()
  } finally {
    await parent.close()
  }
}

/**
 * Stores a message, which is durable when the promise resolves with the names of its files. A message with more recipients than a file may have is divided
 * among several files, which become complete after all of them are written. Rejects with the system error (EEXIST when a name
 * exists) and then leaves no file.
 *
 * The content is synced before the mode that marks the file as complete. So no order of disk writes can produce a complete file
 * with half a message.
 */
export async function submitToMaildrop(
  files: SubmissionFiles,
  queueDirectory: string,
  { newName, envelope, content }: { readonly newName: () => string; readonly envelope: Envelope; readonly content: Uint8Array },
): Promise<readonly string[]> {
  const folder = maildropFolder(queueDirectory)
  const written: { readonly name: string; readonly path: string; readonly file: FileHandle }[] = []
  try {
    for (const part of splitEnvelope(envelope)) {
      const name = newName()
      const path = join(folder, name)
      const file = await files.open(path, 'wx', INCOMPLETE)
      written.push({ name, path, file })
      await file.writeFile(Buffer.concat([encodeEnvelope(part, content.length), content]))
      await file.sync()
    }
    for (const { file } of written) {
      await file.chmod(COMPLETE)
      await file.sync()
    }
    await syncFolder(files, folder)
    return written.map(({ name }) => name)
  } catch (error) {
    for (const { path } of written) await files.rm(path, { force: true })
    throw error
  } finally {
    for (const { file } of written) await file.close()
  }
}

/**
 * Syncs the folder if this user may open it. For other users, the sync of a new file also makes its name durable (ext4, XFS,
 * Btrfs).
 */
async function syncFolder(files: SubmissionFiles, path: string): Promise<void> {
  try {
    const folder = await files.open(path, constants.O_RDONLY | constants.O_DIRECTORY)
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  } catch (error) {
    if (errorCode(error) !== 'EACCES') throw error
  }
}
