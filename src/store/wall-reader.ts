/**
 * A QueueReader whose results have wall clock times instead of times of the queue's clock. The two differ after the wall clock was
 * set. `createdAt` is not converted, because the queue id is derived from it.
 */
import { eventTime, type KeptEvent } from '../events/kept-event.ts'
import type { Duration, Instant, MachineClock } from '../system/clock.ts'
import { QueueClock } from '../system/queue-clock.ts'
import type { MessageSummary, Recipient } from '../mail/message.ts'
import type { MessageDetails, QueueReader } from './queue-reader.ts'
import { onClockAhead, type QueueFilter } from './message-conditions.ts'
import type { AccessToken } from './access-token.ts'
import type { StsPolicy } from './tls/sts-policy.ts'
import type { AuditEntry } from './audit-log.ts'
import type { ParkedEvent, Progress } from './outbox/subscription.ts'
import type { AttemptRecord } from './queue-store.ts'

/** Returns `reader`, wrapped when the queue's clock differs from the wall clock. Reads the record of the clock once. */
export async function onWallClock(reader: QueueReader, machine: MachineClock): Promise<QueueReader> {
  const clock = new QueueClock(machine)
  clock.resume(await reader.clockRecord(), 0)
  const offset = clock.wallOffset()
  return offset === 0 ? reader : onOffset(reader, () => offset)
}

/** Returns `reader` with times of a clock that is behind that of the queue by `offset` ms. */
export function onOffset(reader: QueueReader, offset: () => Duration): QueueReader {
  const wall = (at: Instant): Instant => at - offset()
  const wallOrNull = (at: Instant | null): Instant | null => (at === null ? null : wall(at))
  const message = <M extends MessageSummary>(one: M): M => ({ ...one, arrivedAt: wall(one.arrivedAt) })
  const recipient = <R extends Pick<Recipient, 'dueAt' | 'expiresAt'> & { readonly settledAt?: Instant | undefined }>(one: R): R => ({
    ...one,
    dueAt: wall(one.dueAt),
    expiresAt: wall(one.expiresAt),
    ...(one.settledAt === undefined ? {} : { settledAt: wall(one.settledAt) }),
  })
  const attempt = (one: AttemptRecord): AttemptRecord => ({ ...one, at: wall(one.at) })
  const entry = (one: AuditEntry): AuditEntry => ({
    ...one,
    at: wall(one.at),
    lastAt: wall(one.lastAt),
    undoUntil: wallOrNull(one.undoUntil),
  })
  const policy = (one: StsPolicy): StsPolicy => ({
    ...one,
    fetchedAt: wall(one.fetchedAt),
    expiresAt: wall(one.expiresAt),
    usedAt: wall(one.usedAt),
    failedAt: wallOrNull(one.failedAt),
  })
  const token = (one: AccessToken): AccessToken => ({
    ...one,
    addedAt: wall(one.addedAt),
    expiresAt: wallOrNull(one.expiresAt),
    lastUsedAt: wallOrNull(one.lastUsedAt),
  })
  const progress = (one: Progress): Progress => ({
    ...one,
    dueAt: wallOrNull(one.dueAt),
    lastAnswer: one.lastAnswer === null ? null : { ...one.lastAnswer, at: wall(one.lastAnswer.at) },
  })
  const event = (one: KeptEvent): KeptEvent => ({ ...one, at: eventTime(one.at, offset()) })
  const parked = (one: ParkedEvent): ParkedEvent => ({
    ...one,
    event: event(one.event),
    parkedAt: wall(one.parkedAt),
    dueAt: wallOrNull(one.dueAt),
  })
  const details = (one: MessageDetails): MessageDetails => ({
    ...one,
    message: message(one.message),
    ...(one.leftAt === undefined ? {} : { leftAt: wall(one.leftAt) }),
    recipients: one.recipients.map(recipient),
    history: one.history.map(attempt),
  })
  const filterOf = (filter: QueueFilter): QueueFilter => onClockAhead(filter, offset())
  // No spread of `reader`: a new method does not compile before its times are converted here, or have no need of it.
  return {
    named: (queueIds) => reader.named(queueIds),
    sliceEnd: (after, size) => reader.sliceEnd(after, size),
    lastId: () => reader.lastId(),
    readChunk: (of, index) => reader.readChunk(of, index),
    trashCount: () => reader.trashCount(),
    clockRecord: () => reader.clockRecord(),
    placedBy: (...args) => reader.placedBy(...args),
    providerOf: (...args) => reader.providerOf(...args),
    membersOfProviders: () => reader.membersOfProviders(),
    close: () => reader.close(),
    list: async (filter, page) =>
      (await reader.list(filterOf(filter), page)).map((one) => ({
        ...one,
        message: message(one.message),
        recipients: one.recipients.map(recipient),
      })),
    find: (filter, page) => reader.find(filterOf(filter), page),
    survey: async (filter, page) => {
      const bounds = page.bounds?.map((at) => at + offset())
      const found = await reader.survey(filterOf(filter), { ...page, ...(bounds === undefined ? {} : { bounds }) })
      return { ...found, oldestArrival: wallOrNull(found.oldestArrival) }
    },
    expiring: (before, most) => reader.expiring(before + offset(), most),
    details: async (queueId) => {
      const one = await reader.details(queueId)
      return one === undefined ? undefined : details(one)
    },
    departed: async (filter, page) => {
      const since = filter.since === null ? null : filter.since + offset()
      const found = await reader.departed({ ...filter, since }, page)
      return { ...found, messages: found.messages.map(details) }
    },
    causes: async (page) => {
      const { through, groups } = await reader.causes(page)
      return { through, groups: groups.map((one) => ({ ...one, since: wallOrNull(one.since), last: wallOrNull(one.last) })) }
    },
    counts: async () => (await reader.counts()).map((one) => ({ ...one, oldestArrival: wall(one.oldestArrival) })),
    traffic: async (since) => {
      const { total, minutes } = await reader.traffic(since + offset())
      return { total, minutes: minutes.map((one) => ({ ...one, at: wall(one.at) })) }
    },
    destinationLoads: async (page) =>
      (await reader.destinationLoads(page)).map((one) => ({ ...one, nextDueAt: wallOrNull(one.nextDueAt) })),
    destinationLoad: async (name) => {
      const one = await reader.destinationLoad(name)
      return { ...one, nextDueAt: wallOrNull(one.nextDueAt) }
    },
    destinationRecords: async () => (await reader.destinationRecords()).map((one) => ({ ...one, deadUntil: wallOrNull(one.deadUntil) })),
    audit: async (page) => (await reader.audit(page)).map(entry),
    auditBefore: async (filter, page) => {
      const since = filter.since === null ? null : filter.since + offset()
      return (await reader.auditBefore({ ...filter, since }, page)).map(entry)
    },
    operation: async (id) => {
      const found = await reader.operation(id)
      return found === undefined ? undefined : entry(found)
    },
    operationsOn: async (id) => (await reader.operationsOn(id)).map(entry),
    keptRequest: async (key) => {
      const found = await reader.keptRequest(key)
      return found === undefined ? undefined : { ...found, at: wall(found.at) }
    },
    tokens: async () => (await reader.tokens()).map(token),
    accessEntries: async () =>
      (await reader.accessEntries()).map((one) => ({ ...one, addedAt: wall(one.addedAt), expiresAt: wallOrNull(one.expiresAt) })),
    stsPolicy: async (domain) => {
      const found = await reader.stsPolicy(domain)
      return found === undefined ? undefined : policy(found)
    },
    sharedGrants: async () => (await reader.sharedGrants()).map((one) => ({ ...one, expiresAt: wall(one.expiresAt) })),
    stsPolicies: async () => (await reader.stsPolicies()).map(policy),
    providerRecords: async () =>
      (await reader.providerRecords()).map((one) => ({
        ...one,
        effects: one.effects.map((effect) => ({ ...effect, until: wall(effect.until) })),
      })),
    allSubscriptions: async () =>
      (await reader.allSubscriptions()).map((one) => ({
        ...one,
        createdAt: wall(one.createdAt),
        oldestAt: wallOrNull(one.oldestAt),
        progress: progress(one.progress),
      })),
    parkedEvents: async (name, page) => (await reader.parkedEvents(name, page)).map(parked),
    eventsAfter: async (page) => {
      const found = await reader.eventsAfter(page)
      return { ...found, events: found.events.map(event) }
    },
    tokenByHash: async (hash) => {
      const found = await reader.tokenByHash(hash)
      return found === undefined ? undefined : token(found)
    },
    ages: async (page) => (await reader.ages(page)).map((one) => ({ ...one, arrivedAt: wall(one.arrivedAt) })),
  }
}
