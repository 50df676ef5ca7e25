/** Destinations as commands show them: from the queue and the running daemon of this machine, or from the API of a relay. */
import type { Config } from '../../config/options.ts'
import { destinationRow, destinationRows } from '../../queries/destination-list.ts'
import { destinationJson, type DestinationJson } from '../../resources/destination-json.ts'
import type { QueueSource, Shell } from '../shell/shell.ts'
import { queryOf } from './api-connection.ts'

export interface ShownDestinations {
  /** False when no daemon runs. */
  readonly isRunning: boolean
  /** All with mail, with a recorded state or in memory. */
  all(): AsyncIterable<DestinationJson>
  /** One destination; undefined when nothing is known of it. */
  named(name: string): Promise<DestinationJson | undefined>
}

/** Names the node that schedules a destination; null when no node does, and for a queue in a folder. */
export async function nodesOf(shell: Shell, config: Config): Promise<(destination: string) => string | null> {
  const nodes = await shell.openNodes(config)
  if (nodes === null) return () => null
  try {
    return await nodes.owners()
  } finally {
    await nodes.close()
  }
}

export async function shownDestinations(shell: Shell, config: Config, source: QueueSource): Promise<ShownDestinations> {
  if (source.api !== null) {
    const { api } = source
    return {
      isRunning: true,
      all: () => api.rows<DestinationJson>('/destinations'),
      named: async (name) => {
        for await (const one of api.rows<DestinationJson>(`/destinations${queryOf({ name })}`)) if (one.destination === name) return one
        return undefined
      },
    }
  }
  const { reader, clock } = source
  const live = await shell.liveDestinations(config)
  const nodeOf = await nodesOf(shell, config)
  return {
    isRunning: live !== null,
    all: async function* () {
      for await (const row of destinationRows(reader, live)) yield destinationJson(row, nodeOf(row.name), clock.wall)
    },
    named: async (name) => {
      const inMemory = live?.find(({ destination }) => destination === name)
      const row = await destinationRow(reader, name, inMemory)
      return row === undefined ? undefined : destinationJson(row, nodeOf(name), clock.wall)
    },
  }
}
