/** The QueueReader over PostgreSQL, for the daemon and for commands on any machine that reaches the database. */
import { restorableSince } from '../message-operation.ts'
import type { MessageId, QueueName } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { recipientRange } from '../sql/id-ranges.ts'
import { freshRecord, type DestinationRecord } from '../queue-store.ts'
import type { MessageDetails, QueueReader } from '../queue-reader.ts'
import { mailReader } from '../sql/mail-reads.ts'
import { QUEUE_NAME, THEIRS } from '../sql/message-selection.ts'
import { rowOf, statement, type Query, type Read, type Step } from '../sql/read.ts'
import { destinations, toAttempt, toDestination, type AttemptRow, type DestinationRow } from '../sql/stored-rows.ts'
import { NO_TRAFFIC, type Traffic, type TrafficMinute } from '../counts/traffic.ts'
import { PROVIDER_MEMBERS, PROVIDERS, withSuspendedProviders } from '../records/provider-state.ts'
import { recordCall, recordsOver } from '../records/records.ts'
import { runRecord } from './session/record-calls.ts'
import { messagePage } from './message-pages.ts'
import { outboxReader } from './outbox-reader.ts'
import { Contents } from './writing/contents.ts'
import type { Statements } from './session/database-connection.ts'
import { place, POSTGRES } from './spelling.ts'
import { MESSAGE_COLUMNS, toMessage, toRecipient, type MessageRow, type RecipientRow } from './writing/rows.ts'
import { firstTraffic, trafficSince, trafficTotal } from './writing/traffic-counts.ts'

/** Creates the reader. `close` ends its session. */
export function createPostgresReader(reading: Statements, close: () => Promise<void>): QueueReader {
  const contents = new Contents(reading)
  return {
    ...mailReader({ spelling: POSTGRES, place, page: messagePage, details }, (read) => answerOf(reading, read)),
    readChunk: ({ contentId }, index) => contents.readChunk(contentId, index),
    destinationRecords: () => destinationRecords(reading),
    clockRecord: async () => null,
    records: recordsOver((...call) => runRecord(reading, recordCall(call), ...call[2])),
    ...outboxReader(reading),
    traffic: (since) => traffic(reading, since),
    firstTraffic: async () => (await reading.query<{ readonly first: QueueTime | null }>(firstTraffic))[0]?.first ?? null,
    close,
  }
}

async function answerOf<T>(reading: Statements, read: Read<T>): Promise<T> {
  let step = read.next()
  while (step.done !== true) step = read.next(await resultOf(reading, step.value))
  return step.value
}

async function resultOf(reading: Statements, step: Step): Promise<unknown> {
  if ('each' in step) return Promise.all(step.each.map((read) => answerOf(reading, read)))
  if ('together' in step) return answerOf(reading, step.together)
  return reading.query(step.text, step.parameters)
}

type Placed = MessageRow & {
  readonly why: string | null
  readonly queue: QueueName | 'trash'
  readonly all_recipients: readonly RecipientRow[] | null
  readonly attempts: readonly AttemptRow[] | null
}

/** A message with all its recipients and attempts, of one moment. */
export const messageWithAll = (message: MessageId): Query =>
  statement(
    (add) => `
      select ${MESSAGE_COLUMNS}, message.why, ${QUEUE_NAME} as queue,
        (select json_agg(to_json(r) order by r.id) from (
          select r.*, n.name as node_name from recipient r left join node n on n.id = r.leased_by where ${THEIRS}) r) as all_recipients,
        (select json_agg(to_json(a) order by a.at, a.recipient, a.number) from attempt a
          where a.recipient ${recipientRange('message.id')}) as attempts
      from message where message.id = ${add(message)}`,
  )

function* details(message: MessageId): Read<MessageDetails | undefined> {
  const row = yield* rowOf<Placed>(messageWithAll(message))
  if (row === undefined) return undefined
  return {
    message: toMessage(row),
    queue: row.queue,
    forcedExpire: row.forced_expire,
    why: row.why ?? undefined,
    deletedAt: restorableSince(row.deleted_at),
    warnings: row.warnings,
    recipients: (row.all_recipients ?? []).map(toRecipient),
    history: (row.attempts ?? []).map(toAttempt),
  }
}

async function destinationRecords(reading: Statements): Promise<readonly DestinationRecord[]> {
  const rows = await reading.query<DestinationRow>(destinations)
  const [effects, orders] = [await runRecord(reading, PROVIDERS.all), await runRecord(reading, PROVIDERS.suspensions)]
  const members = effects.length + orders.length === 0 ? [] : await runRecord(reading, PROVIDER_MEMBERS.all)
  return withSuspendedProviders(rows.map(toDestination), { effects, orders }, { members: () => members, fresh: freshRecord })
}

async function traffic(
  reading: Statements,
  since: QueueTime,
): Promise<{ readonly total: Traffic; readonly minutes: readonly TrafficMinute[] }> {
  const [[total], minutes] = await Promise.all([reading.query<Traffic>(trafficTotal), reading.query<TrafficMinute>(trafficSince, [since])])
  return { total: total ?? NO_TRAFFIC, minutes }
}
