/**
 * Counts the queue of all nodes in one statement, and so at one moment. The count reads every live recipient, which takes some seconds
 * per million; a result is used again for a while.
 */
import type { QueueName } from '../../../mail/message.ts'
import { seconds, type Clock, type Duration, type QueueTime } from '../../../system/clock.ts'
import type { QueueTally } from '../../counts/queue-tally.ts'
import { NO_TRAFFIC, TRAFFIC_KINDS, type Traffic } from '../../counts/traffic.ts'
import { queueNameIn } from '../../decisions/queue-name.ts'
import { closedDestinations } from '../../sql/message-selection.ts'
import type { Statements } from '../session/database-connection.ts'
import { messageIdOf } from '../../sql/id-ranges.ts'

/** Live recipients by message, and the queue of each message. */
const QUEUED = `
  live as materialized (select ${messageIdOf('id')} as message, state, destination, attempts from recipient where settled_at is null),
  counted as (select message, count(*) as recipients, count(*) filter (where state = 'waiting') as waiting, bool_or(state = 'leased') as is_active,
      bool_or(attempts > 0 or destination in (${closedDestinations})) as is_deferred from live group by message),
  queued as (select counted.recipients, counted.waiting, class, arrived_at,
      ${queueNameIn({ placement: 'placement', isActive: 'is_active', scheduled: 'scheduled', isDeferred: 'is_deferred' })} as queue
    from counted join message on message.id = counted.message)`

const TRAFFIC = TRAFFIC_KINDS.map((kind) => `'${kind}', coalesce(sum(${kind}), 0)`).join(', ')

export const tally = `
  with ${QUEUED}
  select
    (select json_agg(q) from (select queue, count(*) as messages, sum(recipients) as recipients,
      min(arrived_at) / 1000 * 1000 as "oldestArrival" from queued group by queue) q) as queues,
    (select json_agg(w) from (select destination, count(*) filter (where state = 'waiting') as recipients,
        count(*) filter (where state = 'leased') as leased,
        count(*) filter (where state = 'waiting' and message in (select id from message where scheduled and placement = 'queued')) as scheduled
      from live where state in ('waiting', 'leased') group by destination order by 2 desc, 3 desc, 1 limit $1) w) as waiting,
    (select json_agg(c) from (select class, sum(waiting) as recipients from queued where class is not null and waiting > 0 group by class) c) as classes,
    (select json_build_object(${TRAFFIC}) from traffic) as traffic`

interface CountedQueue {
  readonly queue: QueueName | 'trash'
  readonly messages: number
  readonly recipients: number
  readonly oldestArrival: QueueTime
}

interface TallyRow {
  readonly queues: readonly CountedQueue[] | null
  readonly waiting: QueueTally['waiting'] | null
  readonly classes: QueueTally['classes'] | null
  readonly traffic: Traffic | null
}

/** A count is used at least this long, and ten times as long as it took. */
export const KEPT_FOR: Duration = seconds(5)
const KEPT_TIMES = 10

export class TallyQuery {
  readonly #clock: Clock
  readonly #keptFor: Duration
  readonly #reading: Statements
  #kept: { readonly tally: QueueTally; readonly until: Duration; readonly largest: number } | null = null

  constructor(clock: Clock, keptFor: Duration, reading: Statements) {
    this.#clock = clock
    this.#keptFor = keptFor
    this.#reading = reading
  }

  async tally(largest: number): Promise<QueueTally> {
    const begun = this.#clock.monotonic()
    if (this.#kept !== null && this.#kept.largest === largest && begun < this.#kept.until) return this.#kept.tally
    const [row] = await this.#reading.query<TallyRow>(tally, [largest])
    const counted = tallyOf(row ?? { queues: null, waiting: null, classes: null, traffic: null })
    const ended = this.#clock.monotonic()
    const keptFor = this.#keptFor === 0 ? 0 : Math.max(this.#keptFor, KEPT_TIMES * (ended - begun))
    this.#kept = { tally: counted, largest, until: ended + keptFor }
    return counted
  }
}

function tallyOf({ queues, waiting, classes, traffic }: TallyRow): QueueTally {
  const [trash] = (queues ?? []).filter(({ queue }) => queue === 'trash')
  return {
    queues: (queues ?? []).flatMap(({ queue, ...counts }) => (queue === 'trash' ? [] : [{ queue, ...counts }])),
    trash: { messages: trash?.messages ?? 0, recipients: trash?.recipients ?? 0 },
    waiting: waiting ?? [],
    classes: classes ?? [],
    traffic: traffic ?? NO_TRAFFIC,
  }
}
