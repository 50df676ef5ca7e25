/** Parameters of a queue in PostgreSQL, which several nodes share. */
import { option } from '../values/option.ts'
import * as is from '../values/values.ts'

export const NODE_OPTIONS = {
  queue_database: option(
    is.text,
    '',
    'URL of the PostgreSQL database of the queue, `postgresql://user:password@host:port,host:port/name?sslmode=verify-full`: the first host that accepts writes is used; when empty, the queue is an SQLite file in queue_directory.',
  ),
  queue_database_durability: option(
    is.oneOf('replicated', 'primary'),
    'replicated',
    'Promise of a 250: the mail is on a synchronous standby too (replicated), or on the storage of the primary server (primary).',
  ),
  node_name: option(is.text, '', 'Name of this node, for listings and logs; the name of the machine when empty.'),
  node_lease: option(is.duration, '5s', 'Time without a sign of life after which other nodes take the mail of a node over; at least 2s.'),
} as const
