/** Kinds of events of the nodes that share a queue, and of the daemon. */
import { line, logged, same, type Level } from '../../events/event-kind.ts'
import type { OwnerId } from '../../mail/message.ts'
import type { DoubtResolution } from '../../store/membership/writing-events.ts'

const RESOLUTION_TEXTS: Readonly<Record<DoubtResolution, string>> = {
  committed: 'it was committed',
  'not-committed': 'it was not committed, and is repeated',
  unknown: 'it could not be looked up in time, so that clients get no reply and repeat their messages',
}

/** Maximum number of queue ids in a line. */
const SHOWN_IDS = 20

export const NODE_KINDS = {
  'node-joined': logged<{ /** Number of this node. */ readonly node: OwnerId; readonly name: string }>({
    level: 'info',
    about: 'this node joined a queue that several nodes share',
    record: same('node', 'name'),
    lines: ({ node, name }) => line('master', `node ${name} joined the queue with number ${node}`),
  }),
  'shards-taken': logged<{ /** Number of shards. */ readonly shards: number }>({
    level: 'info',
    about: 'this node schedules the destinations of more shards; `shards` is their number',
    record: same('shards'),
    lines: ({ shards }) => line('master', `shards taken: ${shards}`),
  }),
  'shards-released': logged<{ readonly shards: number }>({
    level: 'info',
    about: 'this node gave shards up to other nodes',
    record: same('shards'),
    lines: ({ shards }) => line('master', `shards released: ${shards}`),
  }),
  'node-taken-over': logged<{
    readonly node: OwnerId
    readonly name: string
    readonly shards: number
    /** Number of recipients that were in its active queue. */
    readonly leases: number
    /** Queue ids of messages moved to the corrupt queue, because several nodes failed while they delivered them. */
    readonly corrupt: readonly string[]
  }>({
    level: 'warn',
    about:
      'another node was silent: its leases have ended, and its shards are free; `corrupt` are the queue ids of messages that were moved to the corrupt queue',
    record: same('node', 'name', 'shards', 'leases', 'corrupt'),
    lines({ node, name, shards, leases, corrupt }) {
      const text = `warning: node ${name} (${node}) was silent and is taken over: shards=${shards}, leases=${leases}`
      return line('master', corrupt.length === 0 ? text : `${text}, moved to the corrupt queue: ${corrupt.join(', ')}`)
    },
  }),
  fenced: logged<{ readonly node: OwnerId }>({
    level: 'error',
    about: 'another node took this one over; it abandons its deliveries and joins again',
    record: same('node'),
    lines: ({ node }) =>
      line('master', `error: this node (${node}) was taken over by another one: it abandons its deliveries and joins again`),
  }),
  'commit-in-doubt': logged<{ readonly resolution: DoubtResolution }>({
    level: 'warn',
    about:
      'the answer to a commit was lost: it was found `committed` or `not-committed` (and repeated), or stays `unknown`, and clients got no reply',
    record: same('resolution'),
    lines: ({ resolution }) => line('master', `warning: the answer to a commit was lost; ${RESOLUTION_TEXTS[resolution]}`),
  }),
  'mail-lost': logged<{
    readonly queueIds: readonly string[]
    /** Number of promotions of a standby (timeline of PostgreSQL); null where the server does not tell. */
    readonly timeline: number | null
  }>({
    level: 'error',
    about: 'acknowledged messages are missing in the database after a failover to a standby that had not received them',
    record: { queue_ids: ({ queueIds }) => queueIds, ...same('timeline') },
    lines({ queueIds, timeline }) {
      const server = timeline === null ? 'the database' : `the database (timeline ${timeline})`
      const more = queueIds.length > SHOWN_IDS ? ` and ${queueIds.length - SHOWN_IDS} more` : ''
      const ids = `${queueIds.slice(0, SHOWN_IDS).join(', ')}${more}`
      return line('master', `error: ${server} does not have ${queueIds.length} acknowledged messages, which a failover has lost: ${ids}`)
    },
  }),
}

const NOTE_LEVELS = { info: 'info', warning: 'warn', error: 'error', fatal: 'fatal', panic: 'fatal' } as const satisfies Record<
  string,
  Level
>

export const DAEMON_KINDS = {
  note: logged<{ readonly level: keyof typeof NOTE_LEVELS; readonly text: string }>({
    level: 'info',
    about: 'any other line; its level is that of the line',
    record: same('text'),
    levelOf: ({ level }) => NOTE_LEVELS[level],
    lines: ({ level, text }) => line('master', level === 'info' ? text : `${level}: ${text}`),
  }),
}
