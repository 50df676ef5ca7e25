/**
 * Compares the tally of a store with counts from a listing of the whole queue.
 */
import type { ListedMessage, QueueReader } from '../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import { completeTally, type QueueTally } from '../../src/store/counts/queue-tally.ts'

/** Limit above the number of messages of any test. */
const ALL = 1_000_000

/** Counts in a fixed order, so that two can be compared. */
const sorted = ({ queues, trash, traffic, waiting, classes }: QueueTally): QueueTally => ({
  trash,
  traffic,
  queues: queues.toSorted((a, b) => (a.queue < b.queue ? -1 : 1)),
  waiting: waiting.toSorted((a, b) => b.recipients - a.recipients || (a.destination < b.destination ? -1 : 1)),
  classes: classes.toSorted((a, b) => (a.class < b.class ? -1 : 1)),
})

export const tallyOf = async (store: QueueStore): Promise<QueueTally> => sorted(await completeTally(() => store.tally(ALL)))

export async function tallyOfListing(reader: QueueReader): Promise<QueueTally> {
  const listed = await reader.list(ANY_MESSAGE, { after: 0, limit: ALL })
  const deleted = await reader.list({ ...ANY_MESSAGE, queue: 'trash' }, { after: 0, limit: ALL })
  const trash = { messages: deleted.length, recipients: deleted.flatMap(liveIn).length }
  const { total: traffic } = await reader.traffic(0)
  const queues = [...Map.groupBy(listed, ({ queue }) => queue)].flatMap(([queue, messages]) =>
    queue === 'trash'
      ? []
      : [{ queue, messages: messages.length, recipients: messages.flatMap(liveIn).length, oldestArrival: oldest(messages) }],
  )
  // A delivery may go on after its message was deleted.
  const atDestinations = Map.groupBy(
    [...listed, ...deleted].flatMap((one) =>
      liveIn(one)
        .filter(({ state }) => state === 'waiting' || state === 'leased')
        .map(({ destination, state }) => ({ destination, isWaiting: state === 'waiting', isScheduled: one.queue === 'scheduled' })),
    ),
    ({ destination }) => destination,
  )
  const inClasses = Map.groupBy(listed, ({ message }) => message.class)
  return sorted({
    classes: [...inClasses].flatMap(([name, messages]) => {
      const recipients = messages.flatMap(liveIn).filter(({ state }) => state === 'waiting').length
      return name === undefined || recipients === 0 ? [] : [{ class: name, recipients }]
    }),
    queues,
    trash,
    traffic,
    waiting: [...atDestinations].map(([destination, there]) => ({
      destination,
      recipients: there.filter((one) => one.isWaiting).length,
      leased: there.filter((one) => !one.isWaiting).length,
      scheduled: there.filter((one) => one.isWaiting && one.isScheduled).length,
    })),
  })
}

const liveIn = ({ recipients }: ListedMessage) => recipients

const oldest = (messages: readonly ListedMessage[]): number =>
  Math.floor(Math.min(...messages.map(({ message }) => message.arrivedAt)) / 1_000) * 1_000
