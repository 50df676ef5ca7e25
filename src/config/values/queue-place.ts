/**
 * The kinds of places of a queue, and what differs by the kind beside the engine. Each opening of an engine is a switch over all kinds, or an
 * object of them, so that a further kind does not compile where its opening is missing.
 */
import { isUrl } from './database-url.ts'

interface PlaceFacts {
  /** The parameter that names the place. */
  readonly parameter: 'queue_directory' | 'queue_database'
  /** The kind as requests for moves name it. */
  readonly movedFrom: string
  /** Null for a queue that one daemon owns, and whose files are in `queue_directory`. */
  readonly shared: SharedPlace | null
}

/** A place whose queue several nodes share. */
export interface SharedPlace {
  /** The place in messages: `the queue is in …`. */
  readonly title: string
  /** Tools of the engine that copy a queue, in place of `deferd backup`. */
  readonly copiedBy: string
  /** How to put a copy back, in place of `deferd restore`. */
  readonly restoring: string
}

export const PLACES = {
  folder: { parameter: 'queue_directory', movedFrom: 'directory', shared: null },
  database: {
    parameter: 'queue_database',
    movedFrom: 'database',
    shared: {
      title: 'PostgreSQL (queue_database)',
      copiedBy: 'pg_dump or the base backups of the server',
      restoring: 'restore a dump of pg_dump with psql or pg_restore, while no node runs',
    },
  },
} as const satisfies Readonly<Record<string, PlaceFacts>>

export type QueuePlace = keyof typeof PLACES

/** The kind of a place as requests for moves name it. */
export type MovedFrom = (typeof PLACES)[QueuePlace]['movedFrom']

/** The kind of a place that is named by its directory or its URL. */
export const placeNamed = (place: string): QueuePlace => (isUrl(place) ? 'database' : 'folder')

/** The kind of the place of the configured queue. */
export const placeOf = ({ queue_database: url }: { readonly queue_database: string }): QueuePlace => (url === '' ? 'folder' : 'database')

/** Null for a queue that one daemon owns, and whose files are in `queue_directory`. */
export const sharedPlace = (config: Parameters<typeof placeOf>[0]): SharedPlace | null => PLACES[placeOf(config)].shared

/** The places whose queues have nodes, in messages. */
export const SHARED_TITLES = Object.values(PLACES)
  .flatMap(({ shared }) => (shared === null ? [] : [shared.title]))
  .join(' or ')
