/**
 * Messages in JSON: first the members of Postfix in Postfix's order (postqueue -j), then those of deferd. Names and order are a stable
 * interface. Also entries of the maildrop, which have null for members that do not apply to them.
 */
import { parseMail } from '../mail/mime/parsed-mail.ts'
import { z } from 'zod'
import { differingOrcpt, shownSender } from '../mail/envelope.ts'
import { FINAL_STATES, LIVE_STATES, QUEUE_NAMES, isLive, queueIdOf, type QueueName } from '../mail/message.ts'
import { delayReason, nextAttemptAt, type DestinationRecords } from '../presentation/recipient-status.ts'
import { submissionSender, type Submission } from '../queue/intake/maildrop-listing.ts'
import type { ListedMessage, ListedRecipient, MessageDetails } from '../store/queue-reader.ts'
import type { QueueTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { count, next, textOrNull, time, timeOrNull, wholeTime, wholeTimeShape, type Json } from './members.ts'

export const recipientShape = z.object({
  orig_address: z.string().optional(),
  address: z.string(),
  bounce_reason: z.string().optional(),
  delay_reason: z.string().optional(),
  destination: z.string().nullable(),
  state: z.enum([...LIVE_STATES, ...FINAL_STATES, 'scheduled']),
  attempts: count,
  next_attempt_time: timeOrNull,
  last_status: textOrNull,
  leased_by: z.string().optional().describe('name of the node that delivers'),
})

const isInJson = (name: QueueName): name is Exclude<QueueName, 'scheduled'> => name !== 'scheduled'
/** Scheduled mail is `deferred`, as postqueue -j knows no other queue, with the member `scheduled`. */
const QUEUES_IN_JSON = QUEUE_NAMES.filter(isInJson)

export const messageShape = z.object({
  queue_name: z.enum(['maildrop', ...QUEUES_IN_JSON, 'trash', 'gone']),
  queue_id: z.string(),
  arrival_time: wholeTimeShape,
  message_size: count,
  forced_expire: z.boolean(),
  sender: z.string(),
  recipients: z.array(recipientShape),
  expire_time: timeOrNull,
  attempts: count,
  next_attempt_time: timeOrNull,
  not_before: time.optional().describe('time before which no delivery begins, when the client has named one'),
  scheduled: z.literal(true).optional().describe('until that time has come'),
  expires: time.optional().describe('time at which the client gives the message up, when it has named one'),
  class: z.string().optional().describe('class of the message, with [class.NAME] tables'),
  share: z.string().optional().describe('share of the message (`share_key`), when it arrived with `fair_share` or a limit of shares'),
})

type Queue = MessageDetails['queue']
type Listed = Omit<ListedMessage, 'queue' | 'recipientCount'> & { readonly queue: Queue }
type RecipientJson = Json<typeof recipientShape> & { readonly destination: string }

/** A message that is not in the maildrop. */
export interface MessageJson extends Json<typeof messageShape> {
  readonly queue_name: Exclude<Queue, 'scheduled'>
  readonly recipients: readonly RecipientJson[]
}

/** Absent members are undefined instead of omitted, because long listings are faster with objects of one shape. */
function recipientJson(recipient: ListedRecipient, nextTime: number | null, listed: Listed, records: DestinationRecords): RecipientJson {
  const reason = delayReason(recipient, listed, records) ?? undefined
  const isBounced = recipient.state === 'bounced'
  return {
    orig_address: differingOrcpt(recipient) ?? undefined,
    address: recipient.address,
    bounce_reason: isBounced ? reason : undefined,
    delay_reason: isBounced ? undefined : reason,
    destination: recipient.destination,
    state: listed.queue === 'scheduled' && recipient.state === 'waiting' ? 'scheduled' : recipient.state,
    attempts: recipient.attempts,
    next_attempt_time: nextTime,
    last_status: recipient.last?.status ?? null,
    leased_by: recipient.node,
  }
}

/** The object of `queue list --json` and `postqueue -j`. presentation/message-lines makes its text without the object. */
export function messageJson(listed: Listed, records: DestinationRecords, wall: WallView): MessageJson {
  const { message, queue } = listed
  let attempts = 0
  let expiry: QueueTime | null = null
  let earliest: QueueTime | null = null
  for (const recipient of listed.groups ?? listed.recipients) {
    const at = nextAttemptAt(recipient, queue, records)
    attempts = Math.max(attempts, recipient.attempts)
    if (isLive(recipient)) expiry = Math.max(expiry ?? 0, recipient.expiresAt)
    if (at !== null) earliest = Math.min(earliest ?? at, at)
  }
  const recipients = listed.recipients.map((one) =>
    recipientJson(one, wall.secondsOrNull(nextAttemptAt(one, queue, records)), listed, records),
  )
  return {
    queue_name: queue === 'scheduled' ? 'deferred' : queue,
    queue_id: queueIdOf(message),
    arrival_time: wholeTime(message.arrivedAt, wall),
    message_size: message.size,
    forced_expire: listed.forcedExpire,
    sender: shownSender(message.sender),
    recipients,
    expire_time: wall.secondsOrNull(expiry),
    attempts,
    next_attempt_time: wall.secondsOrNull(earliest),
    not_before: message.notBefore === undefined ? undefined : wall.seconds(message.notBefore),
    scheduled: message.scheduled === true ? true : undefined,
    expires: message.expires === undefined ? undefined : wall.seconds(message.expires),
    class: message.class,
    share: message.share,
  }
}

/** The queue of a message for people. */
export const shownQueue = ({ queue_name: queue, scheduled }: Pick<MessageJson, 'queue_name' | 'scheduled'>): Queue =>
  queue === 'deferred' && scheduled === true ? 'scheduled' : queue

/** A line of the whole listing. */
export const messageLineShape = messageShape.extend({ delay_reason: z.string().optional() }).meta({ id: 'MessageLine' })

/** The line of an entry of the maildrop. */
export const submissionJson = (submission: Submission, wall: WallView): Json<typeof messageLineShape> => ({
  queue_name: 'maildrop',
  queue_id: submission.name,
  arrival_time: wholeTime(submission.arrivedAt, wall),
  message_size: submission.size,
  forced_expire: false,
  sender: submissionSender(submission),
  recipients: submission.recipients.map((address) => ({
    address,
    destination: null,
    state: 'waiting',
    attempts: 0,
    next_attempt_time: null,
    last_status: null,
  })),
  expire_time: null,
  attempts: 0,
  next_attempt_time: null,
  // The reason concerns the file, which may have no readable recipients, so it is a member of the entry.
  delay_reason: submission.reason ?? undefined,
})

/** Maximum number of recipients of a message in a page. */
export const RECIPIENTS_SHOWN = 20

export const recipientCount = count.describe(`all recipients; the list has at most ${RECIPIENTS_SHOWN}`)

export const pageEntryShape = messageShape.extend({ recipient_count: recipientCount })

export type PageEntryJson = MessageJson & Json<typeof pageEntryShape>

/** A message of a page. */
export function pageEntryJson(listed: ListedMessage, records: DestinationRecords, wall: WallView): PageEntryJson {
  const { recipients, ...message } = messageJson(listed, records, wall)
  return { ...message, recipients: recipients.slice(0, RECIPIENTS_SHOWN), recipient_count: listed.recipientCount }
}

export const messagePageShape = z
  .object({
    messages: z.array(pageEntryShape),
    next,
    as_of: time,
  })
  .meta({ id: 'MessagePage' })

export interface MessagePageJson extends Json<typeof messagePageShape> {
  readonly messages: readonly PageEntryJson[]
}

export const messageCountShape = z
  .object({ count, at_least: z.boolean().describe('true when the count ended early') })
  .meta({ id: 'MessageCount' })

export type MessageCountJson = Json<typeof messageCountShape>

/** Answer to a message that is on disk. */
export const acceptedShape = z
  .object({
    queue_id: z.string(),
    message_id: textOrNull,
    recipients: z.array(z.object({ address: z.string(), destination: z.string() })),
    rejected: z
      .array(z.object({ address: z.string(), reason: z.string() }))
      .describe('recipients that are no addresses, or on the suppression list, with `partial`'),
    class: z
      .string()
      .optional()
      .describe('class of the message, with [class.NAME] tables: that which was asked for, or the one below it that is granted'),
  })
  .meta({ id: 'Accepted' })

export type AcceptedJson = Json<typeof acceptedShape>

const attachmentShape = z
  .object({
    part: z.int().min(1).describe('number of the body part, counted from 1'),
    name: textOrNull.describe('file name; null without one'),
    type: z.string().describe('media type as the mail states it'),
    size: count.describe('decoded octets'),
    content_id: textOrNull.describe('Content-ID without its brackets'),
    sha256: z.string().describe('digest of the decoded octets, in hexadecimal'),
  })
  .meta({ id: 'Attachment' })

export const contentPartsShape = z
  .object({
    headers: z.array(z.object({ name: z.string().describe('in lower case'), value: z.string().describe('unfolded and decoded') })),
    text: textOrNull.describe('the first part that is plain text'),
    html: textOrNull.describe('source of the first part that is HTML'),
    attachments: z.array(attachmentShape).describe('the other parts'),
    whole: z
      .boolean()
      .describe('false for a content that is larger than what was read: the last part is cut, and parts behind it are missing'),
  })
  .meta({ id: 'ContentParts' })

export type ContentPartsJson = Json<typeof contentPartsShape>

/** `content` is the beginning of a content that is not `whole`. */
export function contentPartsJson(content: Uint8Array, whole: boolean): ContentPartsJson {
  const { headers, text, html, attachments } = parseMail(content)
  return {
    headers,
    text,
    html,
    attachments: attachments.map(({ part, name, type, size, cid, sha256 }) => ({ part, name, type, size, content_id: cid, sha256 })),
    whole,
  }
}
