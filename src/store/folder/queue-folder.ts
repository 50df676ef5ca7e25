/**
 * Checks that only root and the user of the daemon can change what is in the queue folder. Another user could otherwise read or
 * replace queued mail, or lead the daemon to other files by a link.
 */
import { accessSync, chownSync, constants, lstatSync, readdirSync, statSync, type Stats } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import { diskFailure } from './disk-failure.ts'
import { QueueFolderUnusable } from '../errors.ts'
import { makeFolder } from './folder.ts'

const GROUP_OR_OTHERS_WRITE = 0o022
const STICKY = 0o1000

const OWNER_USES_FOLDER = 0o700
const OWNER_USES_FILE = 0o600

/** Path of the SQLite database in a queue folder. SQLite keeps the `-wal` and `-shm` files beside the database while it is open. */
export const queueFile = (directory: string): string => join(directory, 'queue.db')

/**
 * Creates the queue folder and its missing parents, unless the folder exists. Their owner is `owner`, or the user of the process
 * when `owner` is null. Throws QueueFolderUnusable, DiskFull or StoreFailed.
 */
export function createQueueFolder(directory: string, owner: { readonly uid: number; readonly gid: number } | null): void {
  if (lstatOf(directory) !== null) return
  try {
    for (const path of makeFolder(directory)) if (owner !== null) chownSync(path, owner.uid, owner.gid)
  } catch (cause) {
    throw (
      diskFailure(directory, cause) ??
      new QueueFolderUnusable(`cannot use ${directory} as the queue folder: ${errorMessage(cause)}`, { cause })
    )
  }
}

/**
 * Reason why a daemon of the user `uid` cannot or must not use the folder, with a remedy; null when the daemon can use or create
 * the folder. Changes nothing.
 */
export function folderProblem(directory: string, uid: number): string | null {
  const link = linkProblem(directory, uid)
  if (link !== null) return link
  return lstatOf(directory) === null ? missingProblem(directory) : presentProblem(directory, uid)
}

/** Reason why a missing folder cannot be created in the nearest folder above it that exists; null when that is possible. */
function missingProblem(directory: string): string | null {
  let above = dirname(resolve(directory))
  while (lstatOf(above) === null && above !== dirname(above)) above = dirname(above)
  if (!statSync(above).isDirectory()) return `${above} is not a folder: name another queue_directory`
  const refusal = accessProblem(above)
  return refusal === null
    ? null
    : `it is missing and cannot be created in ${above}: ${refusal}; create it, and chown it to the user of deferd`
}

function presentProblem(directory: string, uid: number): string | null {
  const folder = statSync(directory, { throwIfNoEntry: false })
  if (folder === undefined) return 'it is a link to a missing folder: create the folder, or remove the link'
  if (!folder.isDirectory()) return 'it is not a folder: move the file away, or name another queue_directory'
  if (folder.uid !== uid) return ownerProblem(directory, folder.uid, uid)
  if ((folder.mode & GROUP_OR_OTHERS_WRITE) !== 0) return `other users can write to it: chmod go-w ${directory}`
  if (uid !== 0 && (folder.mode & OWNER_USES_FOLDER) !== OWNER_USES_FOLDER) return `its owner cannot use it: chmod u+rwx ${directory}`
  const refusal = accessProblem(directory)
  if (refusal !== null) return refusal
  const entries = readdirSync(directory, { withFileTypes: true })
  const linked = entries.find((entry) => entry.isSymbolicLink())
  if (linked !== undefined) return `${join(directory, linked.name)} is a symbolic link: move the file to its place, or remove the link`
  const files = entries.filter(({ name }) => QUEUE_FILES.has(name)).map(({ name }) => join(directory, name))
  return files.map((path) => fileProblem(path, uid)).find((problem) => problem !== null) ?? null
}

/** Only a folder of root is given to another user: that of another one may be in use by its daemon. */
function ownerProblem(directory: string, owner: number, uid: number): string {
  const fact = `it belongs to the user with id ${owner}, and the daemon runs as ${uid}`
  return owner === 0
    ? `${fact}: chown -R ${uid} ${directory}`
    : `${fact}: run deferd as the owner (systemctl, sudo -u, or start --user of root), or name another queue_directory`
}

/** Files that the daemon opens for writing. */
export const QUEUE_FILES: ReadonlySet<string> = new Set([
  'queue.db',
  'queue.db-wal',
  'queue.db-shm',
  'lock.db',
  'owner',
  'queue.db-synced',
  'generation',
  'reserve',
])

function fileProblem(path: string, uid: number): string | null {
  const file = lstatOf(path)
  // The owner of the queue may remove a file between the listing and this call.
  if (file === null) return null
  if (!file.isFile()) return `${path} is not a file: move it away`
  if (uid === 0) return null
  if (file.uid !== uid) return `${path} belongs to the user with id ${file.uid}, and the daemon runs as ${uid}: chown it`
  return (file.mode & OWNER_USES_FILE) === OWNER_USES_FILE ? null : `its owner cannot read and write ${path}: chmod u+rw ${path}`
}

/** Error of the system for a write to a folder, for example on a read-only file system; null when writing is permitted. */
function accessProblem(folder: string): string | null {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return null
  } catch (error) {
    return errorMessage(error)
  }
}

/**
 * Reason why a symbolic link in the path must not be followed: a user other than root and `uid` could change or replace it. Null
 * without such a link.
 */
function linkProblem(directory: string, uid: number): string | null {
  for (let path = resolve(directory); path !== dirname(path); path = dirname(path)) {
    if (lstatOf(path)?.isSymbolicLink() !== true) continue
    const link = lstatSync(path)
    const parent = statSync(dirname(path))
    if (!isTrusted(link, uid))
      return `${path} is a link of the user with id ${link.uid}, who can change it: chown -h the link, or name the folder itself`
    if (!isTrusted(parent, uid) || ((parent.mode & GROUP_OR_OTHERS_WRITE) !== 0 && (parent.mode & STICKY) === 0))
      return `${path} is a link that other users can replace, as they can write to ${dirname(path)}: name the folder itself`
  }
  return null
}

const isTrusted = ({ uid: owner }: Stats, uid: number): boolean => owner === 0 || owner === uid

function lstatOf(path: string): Stats | null {
  try {
    return lstatSync(path)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') return null
    throw error
  }
}
