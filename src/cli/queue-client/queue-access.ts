/** Access of commands to the queue: an SQLite file in queue_directory, or PostgreSQL (queue_database). Modules are loaded on demand. */
import { placeOf, sharedPlace, type SharedPlace } from '../../config/values/queue-place.ts'
import { existsSync } from 'node:fs'
import type { Config } from '../../config/options.ts'
import { adminSocketPath } from '../../daemon/admin/socket-path.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import type { Shell } from '../shell/shell.ts'
import { FileAccess, type PlaceAccess } from './file-access.ts'
import type { AccessDeps } from './shared-access.ts'

export type QueueAccess = Pick<
  Shell,
  | 'openReader'
  | 'openQueueClient'
  | 'newLoginCode'
  | 'trace'
  | 'isDaemonRunning'
  | 'readFilesAgain'
  | 'reloadDaemon'
  | 'liveDestinations'
  | 'liveStatus'
  | 'liveShares'
  | 'nodeShares'
  | 'openNodes'
>

/** Folder of the SQLite file of the queue; null for a queue that nodes share. */
export const folderOf = (config: Config): string | null => (sharedPlace(config) === null ? config.queue_directory : null)

/** Throws for a queue that nodes share. The error ends with the remedy. */
export function assertInFolder(config: Config, remedyOf: (place: SharedPlace) => string): void {
  const place = sharedPlace(config)
  if (place !== null) throw new CommandError(EX.usage, `the queue is in ${place.title}: ${remedyOf(place)}`)
}

export function queueAccess(deps: AccessDeps): QueueAccess {
  const at = async (config: Config): Promise<PlaceAccess> => {
    switch (placeOf(config)) {
      case 'folder':
        return new FileAccess(config, deps.clock)
      case 'database': {
        const { SharedAccess } = await import('./shared-access.ts')
        return new SharedAccess(config, deps)
      }
    }
  }
  return {
    openReader: async (config) => (await at(config)).openReader(),
    openQueueClient: async (config, { skipsDaemon } = { skipsDaemon: false }) =>
      (skipsDaemon ? null : await daemonClient(config)) ?? (await at(config)).openClient(),
    liveDestinations: async (config) => (await at(config)).destinations(),
    liveStatus: async (config) => (await at(config)).status(),
    liveShares: async ({ queue_directory: directory }, path) => {
      if (!existsSync(adminSocketPath(directory))) return null
      const { askForShares } = await import('./api-client.ts')
      return askForShares(directory, path)
    },
    nodeShares: async (config) => (await at(config)).shares(),
    newLoginCode: async (config, user) => {
      const { askForLoginCode } = await import('./api-client.ts')
      return askForLoginCode(config.queue_directory, user)
    },
    trace: async (config, terms, show) => {
      const { askToTrace } = await import('./api-client.ts')
      return askToTrace(config.queue_directory, terms, show)
    },
    isDaemonRunning: async ({ queue_directory: directory }) => {
      if (!existsSync(adminSocketPath(directory))) return false
      const { askWhetherRunning } = await import('./api-client.ts')
      return askWhetherRunning(directory)
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
    openNodes: async (config) => (await at(config)).openNodes(),
  }
}

/** A client of the running daemon; null when none runs. */
async function daemonClient(config: Config): Promise<QueueClient | null> {
  const { openDaemonClient } = await import('./api-client.ts')
  return openDaemonClient(config.queue_directory)
}
