/** The times of messages whose clients have named an instant, after the wall clock was set. */
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { queueIdOf } from '../mail/message.ts'
import { requestedInstant } from '../mail/message-times.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import type { ListedMessage, QueueReader } from '../store/queue-reader.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { Clock, QueueTime } from '../system/clock.ts'
import { pages } from './list-pages.ts'
import type { SchedulerControl } from './operation-rounds.ts'
import { rescheduled } from './rescheduling.ts'

/** Number of messages per commit. */
const ROUND = 64

interface WallClockDeps {
  readonly store: Pick<QueueStore, 'operate'>
  readonly reader: QueueReader
  readonly clock: Clock
  readonly policies: () => DestinationPolicies
  readonly scheduler: Pick<SchedulerControl, 'workAdded'>
}

/**
 * Computes the times of messages anew whose clients have named an instant, after the wall clock was set. Mail that is on hold gets its time, too.
 */
export async function followWallClock({ store, reader, clock, policies, scheduler }: WallClockDeps): Promise<void> {
  for (const queue of ['scheduled', 'hold'] as const) {
    for await (const page of pages(reader, { filter: { ...ANY_MESSAGE, queue }, size: ROUND })) {
      const now = clock.now()
      const moved = await Promise.all(
        page.filter(({ message }) => message.scheduled === true).map((listed) => movedTo(listed, reader, clock)),
      )
      const operations = moved.flatMap((one) =>
        one === null
          ? []
          : [
              {
                message: one.listed.message.id,
                operation: rescheduled(
                  one.listed,
                  { notBefore: one.notBefore, expires: one.listed.message.expires },
                  { now, policies: policies(), anyWaiting: false },
                ),
              },
            ],
      )
      if (operations.length === 0) continue
      const results = (await store.operate(operations)) ?? []
      scheduler.workAdded(
        results.flatMap(({ woken }) => woken),
        { revive: false, scheduled: Math.min(...operations.map(({ operation }) => operation.notBefore ?? Infinity)) },
      )
    }
  }
}

/** The new time of a message; null when it stays. */
async function movedTo(
  listed: ListedMessage,
  reader: QueueReader,
  { wall }: Clock,
): Promise<{ readonly listed: ListedMessage; readonly notBefore: QueueTime } | null> {
  const request = (await reader.details(queueIdOf(listed.message)))?.message.holdRequest
  const at = request === undefined ? undefined : requestedInstant(request)
  const notBefore = at === undefined ? listed.message.notBefore : wall.queueTime(at)
  return notBefore === undefined || notBefore === listed.message.notBefore ? null : { listed, notBefore }
}
