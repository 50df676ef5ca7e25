/** Access of commands to the queue: an SQLite file in queue_directory, or PostgreSQL (queue_database). Modules are loaded on demand. */
import { placeOf } from '../../config/values/database-url.ts'
import { existsSync } from 'node:fs'
import type { Config } from '../../config/options.ts'
import { adminSocketPath } from '../../daemon/admin/socket-path.ts'
import type { LiveStatus } from '../../queue/queue-status.ts'
import type { LiveDestination } from '../../store/destination-status.ts'
import type { MachineClock } from '../../system/clock.ts'
import { clockOf } from '../../system/queue-clock.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import type { OpenedReader, Shell } from '../shell/shell.ts'
import type { AccessDeps } from './shared-access.ts'

export type QueueAccess = Pick<
  Shell,
  'openReader' | 'openQueueClient' | 'newLoginCode' | 'readFilesAgain' | 'reloadDaemon' | 'liveDestinations' | 'liveStatus' | 'openNodes'
>

/** Folder of the SQLite file of the queue; null for a queue in PostgreSQL. */
export const folderOf = (config: Config): string | null => (placeOf(config) === 'folder' ? config.queue_directory : null)

/** Throws for a queue in PostgreSQL. The error ends with `remedy`. */
export function assertInFolder(config: Config, remedy: string): void {
  if (folderOf(config) === null) throw new CommandError(EX.usage, `the queue is in PostgreSQL (queue_database): ${remedy}`)
}

export function queueAccess(deps: AccessDeps): QueueAccess {
  const shared = async (config: Config) => {
    const { SharedAccess } = await import('./shared-access.ts')
    return new SharedAccess(config, deps)
  }
  return {
    openReader: async (config) => (folderOf(config) === null ? (await shared(config)).openReader() : openFileReader(config, deps.clock)),
    openQueueClient: async (config, { skipsDaemon } = { skipsDaemon: false }) =>
      (skipsDaemon ? null : await daemonClient(config)) ??
      (folderOf(config) === null ? (await shared(config)).openClient() : openFileClient(config, deps.clock)),
    liveDestinations: async (config) => (folderOf(config) === null ? (await shared(config)).destinations() : liveDestinations(config)),
    liveStatus: async (config) => (folderOf(config) === null ? (await shared(config)).status() : liveStatus(config)),
    newLoginCode: async (config, user) => {
      const { askForLoginCode } = await import('./api-client.ts')
      return askForLoginCode(config.queue_directory, user)
    },
    readFilesAgain: async ({ queue_directory: directory }) => {
      if (!existsSync(adminSocketPath(directory))) return false
      const { askToReadFiles } = await import('./api-client.ts')
      return askToReadFiles(directory)
    },
    reloadDaemon: async ({ queue_directory: directory }) => {
      const { askToReload } = await import('./api-client.ts')
      return askToReload(directory)
    },
    openNodes: async (config) => (folderOf(config) === null ? (await shared(config)).openNodes() : null),
  }
}

/** Opens the SQLite file of a queue for reading. */
export async function openFileReader(config: Config, machine: MachineClock): Promise<OpenedReader> {
  const { openQueueReader } = await import('../../store/sqlite/sqlite-reader.ts')
  const reader = openQueueReader(config.queue_directory)
  return { reader, clock: clockOf(await reader.clockRecord(), machine) }
}

/** A client of the running daemon; null when none runs. */
async function daemonClient(config: Config): Promise<QueueClient | null> {
  const { openDaemonClient } = await import('./api-client.ts')
  return openDaemonClient(config.queue_directory)
}

async function openFileClient(config: Config, clock: MachineClock): Promise<QueueClient> {
  const { openDirectClient } = await import('./direct-client.ts')
  return openDirectClient(config, clock)
}

/** The destinations of the running daemon; null when none runs. Without a socket, the client's module (10 ms) is not loaded. */
async function liveDestinations({ queue_directory: directory }: Config): Promise<readonly LiveDestination[] | null> {
  if (!existsSync(adminSocketPath(directory))) return null
  const { askForDestinations } = await import('./api-client.ts')
  return askForDestinations(directory)
}

/** Status of the running daemon; null when none runs. */
async function liveStatus({ queue_directory: directory }: Config): Promise<LiveStatus | null> {
  if (!existsSync(adminSocketPath(directory))) return null
  const { askForStatus } = await import('./api-client.ts')
  return askForStatus(directory)
}
