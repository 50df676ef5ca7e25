/**
 * Formats messages as lines of JSON, for long listings: the text of `jsonLine(messageJson(…))`, without the objects of
 * `messageJson`, in half the time. test/presentation/message-lines.test.ts compares the two. V8 joins the pieces of a line when it is
 * encoded, so that constant members and repeated values are one piece.
 */
import type { QueueTime, WallTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { differingOrcpt } from '../mail/envelope.ts'
import { isLive, queueIdOf } from '../mail/message.ts'
import { escapeControls } from '../mail/smtp-reply.ts'
import type { ListedMessage, ListedRecipient } from '../store/queue-reader.ts'
import { shownSender } from '../mail/envelope.ts'
import { delayReason, nextAttemptAt, type DestinationRecords } from './recipient-status.ts'
import { asciiBytes } from './text.ts'

/** Matches text that JSON does not escape. */
const PLAIN = /^[ !#-[\]-~]*$/

/** A text as in JSON, without its quotation marks. */
const escaped = (text: string): string => (PLAIN.test(text) ? text : escapeControls(JSON.stringify(text).slice(1, -1)))

/** Maximum number of values whose JSON is kept. */
const MOST_KEPT = 100

/** Keeps the JSON of values: a listing has few distinct ones, each many times. */
function kept(make: (text: string) => string): (text: string) => string {
  const made = new Map<string, string>()
  return (text) => {
    let json = made.get(text)
    if (json === undefined) {
      // A flat text: one that V8 has not joined would be joined in each line.
      json = Buffer.from(make(text)).toString()
      if (made.size >= MOST_KEPT) made.clear()
      made.set(text, json)
    }
    return json
  }
}

const reasonMember = {
  delay: kept((reason) => `","delay_reason":"${escaped(reason)}","destination":"`),
  bounce: kept((reason) => `","bounce_reason":"${escaped(reason)}","destination":"`),
}
const stateMember = kept((state) => `","state":"${state}","attempts":`)
const statusMember = kept((status) => `,"last_status":"${escaped(status)}"`)
const queueMember = kept((queue) => `{"queue_name":"${queue}","queue_id":"`)

/** In ms. A double has all digits of the seconds up to this time. */
const LATEST_EXACT = 1e14

/** Decimal fractions of a second by their milliseconds: `.5` for 500, and nothing for 0. */
const FRACTIONS: readonly string[] = Array.from({ length: 1000 }, (_, rest) => String(rest / 1000).slice(1))

/** The JSON of `epochSeconds`. */
function seconds(at: WallTime | null): string {
  if (at === null) return 'null'
  if (!Number.isInteger(at) || at < 0 || at > LATEST_EXACT) return JSON.stringify(at / 1000)
  const whole = Math.floor(at / 1000)
  return `${whole}${FRACTIONS[at - whole * 1000]}`
}

function recipientJson(recipient: ListedRecipient, next: string, records: DestinationRecords, place: ListedMessage): string {
  const { state, last, node, orcpt } = recipient
  const original = orcpt === undefined ? null : differingOrcpt(recipient)
  const reason = delayReason(recipient, place, records)
  const first = original === null ? '{"address":"' : `{"orig_address":"${escaped(original)}","address":"`
  const why = reason === null ? '","destination":"' : reasonMember[state === 'bounced' ? 'bounce' : 'delay'](reason)
  const status = last === null ? ',"last_status":null' : statusMember(last.status)
  const end = node === undefined ? '}' : `,"leased_by":"${escaped(node)}"}`
  const where = `${first}${escaped(recipient.address)}${why}${escaped(recipient.destination)}`
  return `${where}${stateMember(place.queue === 'scheduled' && state === 'waiting' ? 'scheduled' : state)}${recipient.attempts},"next_attempt_time":${next}${status}${end}`
}

/** A message as a line of JSON. */
function messageLine(listing: ListedMessage, records: DestinationRecords, wall: WallView): string {
  const { message, queue, forcedExpire, recipients: listed } = listing
  const isScheduled = queue === 'scheduled'
  let recipients = ''
  let attempts = 0
  let expiry: QueueTime | null = null
  let earliest: QueueTime | null = null
  let earliestText = 'null'
  for (const recipient of listed) {
    const next = nextAttemptAt(recipient, queue, records)
    const nextText = seconds(wall.orNull(next))
    const json = recipientJson(recipient, nextText, records, listing)
    recipients = recipients === '' ? json : `${recipients},${json}`
    attempts = Math.max(attempts, recipient.attempts)
    if (isLive(recipient)) expiry = Math.max(expiry ?? 0, recipient.expiresAt)
    if (next === null || (earliest !== null && earliest <= next)) continue
    earliest = next
    earliestText = nextText
  }
  const expires = forcedExpire ? ',"forced_expire":true,"sender":"' : ',"forced_expire":false,"sender":"'
  const head = `${queueMember(isScheduled ? 'deferred' : queue)}${queueIdOf(message)}","arrival_time":${Math.floor(wall.seconds(message.arrivedAt))},"message_size":${message.size}`
  const sent = `${head}${expires}${escaped(shownSender(message.sender))}","recipients":[`
  return `${sent}${recipients}],"expire_time":${seconds(wall.orNull(expiry))},"attempts":${attempts},"next_attempt_time":${earliestText}${timesOf(message, wall)}${orderOf(message)}}\n`
}

/** The times that the client has named; empty for most mail. */
function timesOf({ notBefore, scheduled, expires }: ListedMessage['message'], wall: WallView): string {
  const from = notBefore === undefined ? '' : `,"not_before":${seconds(wall.of(notBefore))}${scheduled === true ? ',"scheduled":true' : ''}`
  return expires === undefined ? from : `${from},"expires":${seconds(wall.of(expires))}`
}

/** The class and the share; empty without them. */
function orderOf({ class: name, share }: ListedMessage['message']): string {
  const ofClass = name === undefined ? '' : `,"class":"${escaped(name)}"`
  return share === undefined ? ofClass : `${ofClass},"share":"${escaped(share)}"`
}

/** In characters. V8 takes several times as long to encode a text that does not fit into its young generation. */
const ENCODED_AT_ONCE = 16_384

/** Messages as lines of JSON, in a buffer of their own. */
export function listingLines(page: readonly ListedMessage[], records: DestinationRecords, wall: WallView): Uint8Array {
  const chunks: string[] = []
  let chunk = ''
  for (const listed of page) {
    chunk += messageLine(listed, records, wall)
    if (chunk.length < ENCODED_AT_ONCE) continue
    chunks.push(chunk)
    chunk = ''
  }
  chunks.push(chunk)
  return asciiBytes(chunks) ?? new TextEncoder().encode(chunks.join(''))
}
