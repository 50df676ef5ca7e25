/** Computes the tally of a queue in memory. Each call counts the whole queue, because such queues are small. */
import { isLive } from '../../mail/message.ts'
import type { QueueCount, QueueTally, TrashCount } from '../counts/queue-tally.ts'
import { sumOfTraffic } from '../counts/traffic.ts'
import { queueOf, type HeldMessage, type MemoryQueue } from './queue-state.ts'

export function countsOf(queue: MemoryQueue): readonly QueueCount[] {
  const counted = [...queue.messages.values()].map((held) => ({
    queue: queueOf(held, queue),
    arrivedAt: held.message.arrivedAt,
    live: held.recipients.filter(isLive).length,
  }))
  const alive = counted.filter(({ live }) => live > 0)
  return [...Map.groupBy(alive, (one) => one.queue)].flatMap(([name, messages]) => {
    if (name === 'trash') return []
    const recipients = messages.reduce((sum, { live }) => sum + live, 0)
    return [{ queue: name, messages: messages.length, recipients, oldestArrival: Math.min(...messages.map(({ arrivedAt }) => arrivedAt)) }]
  })
}

export function trashOf(queue: MemoryQueue): TrashCount {
  const live = [...queue.messages.values()]
    .filter(({ placement }) => placement === 'trash')
    .map(({ recipients }) => recipients.filter(isLive))
  const messages = live.filter(({ length }) => length > 0)
  return { messages: messages.length, recipients: messages.flat().length }
}

export function tallyOf(queue: MemoryQueue, largest: number): QueueTally {
  const queued = [...queue.messages.values()].flatMap((held) => {
    const isScheduled = queueOf(held, queue) === 'scheduled'
    return held.recipients
      .filter(({ state }) => state === 'waiting' || state === 'leased')
      .map(({ destination, state }) => ({ destination, isWaiting: state === 'waiting', isScheduled }))
  })
  const byDestination = [...Map.groupBy(queued, (one) => one.destination)].map(([destination, there]) => {
    const waiting = there.filter((one) => one.isWaiting)
    const scheduled = waiting.filter((one) => one.isScheduled)
    return { destination, recipients: waiting.length, leased: there.length - waiting.length, scheduled: scheduled.length }
  })
  const byClass = Map.groupBy([...queue.messages.values()], ({ message }) => message.class ?? '')
  const waitingOf = (messages: readonly HeldMessage[]): number =>
    messages.flatMap(({ recipients }) => recipients).filter(({ state }) => state === 'waiting').length
  return {
    trash: trashOf(queue),
    traffic: sumOfTraffic([...queue.traffic.values()]),
    queues: countsOf(queue).map((count) => ({ ...count, oldestArrival: Math.floor(count.oldestArrival / 1_000) * 1_000 })),
    waiting: byDestination.toSorted((a, b) => b.recipients - a.recipients || b.leased - a.leased).slice(0, largest),
    classes: [...byClass]
      .map(([name, messages]) => ({ class: name, recipients: waitingOf(messages) }))
      .filter((one) => one.class !== '' && one.recipients > 0),
  }
}
