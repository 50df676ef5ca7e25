/** Access to a queue in an SQLite file, and to the daemon that owns it. Modules are loaded on demand. */
import { existsSync } from 'node:fs'
import type { Config } from '../../config/options.ts'
import { adminSocketPath } from '../../daemon/admin/socket-path.ts'
import type { LiveStatus } from '../../queue/queue-status.ts'
import type { LiveDestination } from '../../queue/scheduler/destination.ts'
import type { LiveShare } from '../../queue/scheduler/turns/share-activity.ts'
import type { NodeDirectory } from '../../store/membership/node-directory.ts'
import type { MachineClock } from '../../system/clock.ts'
import { clockOf } from '../../system/queue-clock.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import type { OpenedReader } from '../shell/shell.ts'

/** Access to a queue at one place. */
export interface PlaceAccess {
  openReader(): Promise<OpenedReader>
  /** A client that changes the queue in this process. */
  openClient(): Promise<QueueClient>
  /** The destinations of what runs on the queue, a daemon or nodes; null when nothing runs. */
  destinations(): Promise<readonly LiveDestination[] | null>
  /** The status of what runs on the queue; null when nothing runs. */
  status(): Promise<LiveStatus | null>
  /** The shares with deliveries, of all nodes that answer; none for a queue that one daemon owns. */
  shares(): Promise<readonly LiveShare[]>
  /** The nodes on the queue; null for a queue that one daemon owns. */
  openNodes(): Promise<NodeDirectory | null>
}

export class FileAccess implements PlaceAccess {
  readonly #config: Config
  readonly #clock: MachineClock

  constructor(config: Config, clock: MachineClock) {
    this.#config = config
    this.#clock = clock
  }

  async openReader(): Promise<OpenedReader> {
    const { openQueueReader } = await import('../../store/sqlite/reading/sqlite-reader.ts')
    const reader = openQueueReader(this.#config.queue_directory)
    return { reader, clock: clockOf(await reader.clockRecord(), this.#clock) }
  }

  async openClient(): Promise<QueueClient> {
    const { openDirectClient } = await import('./direct-client.ts')
    return openDirectClient(this.#config, this.#clock)
  }

  async destinations(): Promise<readonly LiveDestination[] | null> {
    const directory = this.#config.queue_directory
    // Without a socket, the client's module (10 ms) is not loaded.
    if (!existsSync(adminSocketPath(directory))) return null
    const { askForDestinations } = await import('./api-client.ts')
    return askForDestinations(directory)
  }

  async status(): Promise<LiveStatus | null> {
    const directory = this.#config.queue_directory
    if (!existsSync(adminSocketPath(directory))) return null
    const { askForStatus } = await import('./api-client.ts')
    return askForStatus(directory)
  }

  async shares(): Promise<readonly LiveShare[]> {
    return []
  }

  async openNodes(): Promise<null> {
    return null
  }
}
