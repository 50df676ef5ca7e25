/** The route of the API that queues mail. A message is accepted when it is on disk, and not before. */
import { createHash } from 'node:crypto'
import type { z } from 'zod'
import { HTTP_PROBLEMS, invalidPart, Problem, type ProblemKind } from '../http/problem-details.ts'
import { MOST_VALUES, parseJson } from '../http/json-text.ts'
import { shaped, streamBody, type ReceivedBody } from '../http/request-body.ts'
import type { Answer } from '../http/route-table.ts'
import type { Envelope } from '../mail/envelope.ts'
import type { SmtpReply } from '../mail/smtp-reply.ts'
import type { Acceptance, ContentTaker, SmtpClient } from '../queue/intake/acceptor.ts'
import { plural } from '../presentation/text.ts'
import { DataStream } from '../smtpd/stream/data-stream.ts'
import { HAS_NUL } from '../smtpd/dialogue/replies.ts'
import { mailDate } from '../mail/mail-date.ts'
import { SECOND } from '../system/clock.ts'
import { RequestRepeated, type IdempotentRequest, type KeptRequest } from '../store/records/audit-log.ts'
import { listedText } from '../suppression/refusal-text.ts'
import { apiRoute, type ApiRequest, type ApiRoute } from './route/api-route.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { assertTimes, TIMES } from './submitted/submission-times.ts'
import { assertSame, KEY_REUSED, keyOf, REPLAYED } from '../queries/operations/idempotency.ts'
import { maySee } from '../queries/message-query.ts'
import { acceptedShape, type AcceptedJson } from '../resources/message-json.ts'
import {
  composed,
  composedEnvelope,
  compositionShape,
  envelopeQuery,
  envelopeTexts,
  notAnAddress,
  parsedEnvelope,
  queriedEnvelope,
  type GivenEnvelope,
} from './submitted/submitted-mail.ts'

export const REFUSED: ProblemKind = {
  slug: 'message-refused',
  status: 422,
  title: 'Message refused',
  about:
    'The content is refused as over SMTP: too many hops, NUL characters, or a rule of header_checks or body_checks. Nothing was queued.',
}

export const NO_SPACE: ProblemKind = {
  slug: 'no-space',
  status: 507,
  title: 'Insufficient storage',
  about:
    'The disk of the queue has too little free space (`queue_minfree`, `message_size_limit`). Nothing was queued: repeat the request later.',
}

export const RECIPIENTS: ProblemKind = {
  slug: 'invalid-recipients',
  status: 422,
  title: 'Invalid recipients',
  about:
    'A recipient is not an address, or is on the suppression list (`reason` is `suppressed`), and nothing was queued; `errors` lists them. With `partial`, the others get the message.',
}

const RFC822 = 'message/rfc822'
const JSON_TYPE = 'application/json'
/** Size of a JSON body divided by the size of its message: base64 takes four bytes for three. */
const JSON_GROWTH = 1.4
/** In bytes, for the members of a JSON body besides its contents. */
const JSON_REST = 1024 * 1024
/** Size limit without message_size_limit. */
const UNLIMITED = Number.MAX_SAFE_INTEGER

type Query = z.output<typeof envelopeQuery>
type Request = ApiRequest<Query, ReceivedBody>

interface Submitted {
  readonly given: GivenEnvelope
  readonly isPartial: boolean
  readonly content: AsyncIterable<Uint8Array>
}

async function compositionOf({ body, query }: Request) {
  const [superfluous] = Object.keys(query)
  if (superfluous !== undefined) {
    const detail = 'the query is for message/rfc822: name the envelope in the body'
    throw new Problem(HTTP_PROBLEMS.invalid, `invalid request: ${detail}`, { errors: [{ pointer: `/${superfluous}`, detail }] })
  }
  return shaped(compositionShape, parseJson(await body.collected(), MOST_VALUES))
}

/** Writes the bytes with line ends as the queue stores them. */
async function write(content: AsyncIterable<Uint8Array>, receiver: Pick<ContentTaker, 'write' | 'refuse'>): Promise<void> {
  const lines = new DataStream({ chunked: true })
  for await (const piece of content) await receiver.write(lines.read(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)).pieces)
  await receiver.write(lines.finish())
  if (lines.nul) receiver.refuse(HAS_NUL)
}

export const QUEUE_FULL: ProblemKind = {
  slug: 'queue-full',
  status: 503,
  title: 'Queue full',
  about: 'The queue has as much mail as `queue_message_limit` and `queue_size_limit` allow. Nothing was queued: repeat the request later.',
}

const SHARE_FULL: ProblemKind = {
  slug: 'share-full',
  status: 429,
  title: 'Share of the queue full',
  about:
    'The queue has as much mail of the token, or of the sender, as `queue_share_message_limit` and `queue_share_size_limit` allow. Nothing was queued: repeat the request later.',
}

const HELD_FULL: ProblemKind = {
  slug: 'too-many-held',
  status: 429,
  title: 'Too many messages held',
  about:
    'As many messages of the token, or of the sender, are held for later release as `smtpd_future_release_message_limit` allows. Nothing was queued: send or cancel one of them, or submit the message later.',
}

const QUOTA_EXCEEDED: ProblemKind = {
  slug: 'quota-exceeded',
  status: 429,
  title: 'Quota exceeded',
  about:
    'A quota (`[quota.NAME]`) of the token, or of the sender, has no room for the message. Nothing was queued: `Retry-After` is the time after which it has. Without `Retry-After`, it never has room for so many recipients.',
}

const retryIn = (seconds: number) => ({ headers: { 'retry-after': String(seconds) } })

const LIMITS: Record<NonNullable<SmtpReply['limit']>, readonly [ProblemKind, ReturnType<typeof retryIn> | undefined]> = {
  disk: [NO_SPACE, retryIn(30)],
  queue: [QUEUE_FULL, retryIn(60)],
  share: [SHARE_FULL, retryIn(60)],
  held: [HELD_FULL, retryIn(60)],
  quota: [QUOTA_EXCEEDED, undefined],
}

/** The problem of a reply that refuses mail. */
function problemOf({ code, status, text, limit, retryAfter }: SmtpReply): Problem {
  const detail = `${code} ${status} ${text}`
  if (limit !== undefined) {
    const [kind, retry] = LIMITS[limit]
    return new Problem(kind, detail, retryAfter === undefined ? retry : retryIn(Math.ceil(retryAfter / SECOND)))
  }
  if (code === 552) return new Problem(HTTP_PROBLEMS.tooLarge, detail)
  return code < 500 ? new Problem(HTTP_PROBLEMS.unavailable, detail, retryIn(30)) : new Problem(REFUSED, detail)
}

/** Name of a client in the Received field. */
const clientOf = ({ requester, client }: Request): SmtpClient => {
  const isLocal = requester.address === 'local'
  return {
    name: isLocal ? 'localhost' : 'unknown',
    address: isLocal ? '127.0.0.1' : requester.address,
    helo: '',
    protocol: client.scheme === 'https' ? 'HTTPS' : 'HTTP',
    saslUsername: requester.name,
    saslMethod: client.scheme === 'https' ? 'https' : 'http',
    local: true,
    own: true,
  }
}

/** The answer to mail that is on disk, which is kept with the message: a repeated request gets the same one. */
const acceptedAnswer = (value: AcceptedJson, isReplayed: boolean): Answer => ({
  kind: 'json',
  status: 202,
  value,
  headers: isReplayed ? REPLAYED : {},
})

/** Reads the rest of a body, for its digest. */
async function drained(content: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of content) continue
}

/** `reason` of a recipient on the suppression list. */
const SUPPRESSED = 'suppressed'

interface AdmittedEnvelope {
  readonly envelope: Envelope
  readonly rejected: readonly { readonly address: string; readonly reason: string }[]
}

class Submitting {
  readonly #view: QueueView
  readonly #request: Request
  /** Digest of the request: the envelope, and the content as the client sent it. */
  readonly #hash = createHash('sha256').update('POST /messages ')
  #digest: string | null = null

  constructor(view: QueueView, request: Request) {
    this.#view = view
    this.#request = request
  }

  async answer(): Promise<Answer> {
    const { headers, requester } = this.#request
    const key = keyOf(headers, requester)
    const { given, isPartial, content } = await this.#submitted()
    const kept = key === null ? undefined : await this.#view.reader.records.requests.find(key)
    if (kept !== undefined && key !== null) {
      await drained(content)
      return this.#repeated(key, kept)
    }
    const parsed = await this.#parsed(given, isPartial)
    const { saslUsername: user, address } = clientOf(this.#request)
    const origin = { sender: parsed.envelope.sender, user, address }
    const refusal = await this.#view
      .submissions()
      .refusal(Number(headers['content-length'] ?? 0), origin, parsed.envelope.release !== undefined)
    if (refusal !== undefined) throw problemOf(refusal)
    return this.#queue(parsed, content, key)
  }

  async #submitted(): Promise<Submitted> {
    const { body, query, headers } = this.#request
    if (body.contentType === RFC822) {
      const given = queriedEnvelope(query, headers)
      const isPartial = query.partial === 'true'
      this.#hash.update(JSON.stringify([envelopeTexts(given), isPartial]))
      return { given, isPartial, content: this.#hashed(body.bytes) }
    }
    const composition = await compositionOf(this.#request)
    // The composed content has the date and random boundaries.
    const { clock } = this.#view
    this.#hash.update(JSON.stringify(composition))
    return {
      given: await composedEnvelope(composition),
      isPartial: composition.partial === true,
      content: composed(composition, mailDate(clock.now(), clock)),
    }
  }

  async *#hashed(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of content) {
      this.#hash.update(piece)
      yield piece
    }
  }

  /** The request with its digest, when the body has been read. */
  #identity(key: string): IdempotentRequest {
    this.#digest ??= this.#hash.digest('hex')
    return { key, digest: this.#digest }
  }

  /** The envelope of valid recipients. Rejects with Problem when one is invalid, unless the client accepts that. */
  async #parsed(given: GivenEnvelope, isPartial: boolean): Promise<AdmittedEnvelope> {
    const { myorigin: origin, smtpd_recipient_limit: most } = this.#view.loaded().config
    const parsed = parsedEnvelope(given, { origin, most })
    assertTimes(parsed.envelope, this.#view)
    assertClass(parsed.envelope, this.#view)
    const suppressed = await this.#suppressed(parsed.envelope)
    const recipients = parsed.envelope.recipients.filter(({ address }) => !suppressed.has(address))
    const envelope = { ...parsed.envelope, recipients }
    const rejected = [
      ...parsed.rejected.map((one) => ({ ...notAnAddress(one), address: one.text, reason: 'not an address' })),
      ...[...suppressed].map(([address, detail]) => ({
        pointer: parsed.pointers.get(address) ?? '/to',
        detail: `${address} is ${detail}`,
        address,
        reason: SUPPRESSED,
      })),
    ]
    if (rejected.length > 0 && (!isPartial || envelope.recipients.length === 0)) {
      const errors = rejected.map(({ pointer, detail, reason }) => ({ pointer, detail, ...(reason === SUPPRESSED ? { reason } : {}) }))
      const [first] = errors
      const count = `${rejected.length} of ${plural(given.to.length, 'recipient')} ${rejected.length === 1 ? 'is' : 'are'} invalid`
      throw new Problem(RECIPIENTS, `nothing was queued: ${count}: ${first?.pointer}: ${first?.detail}`, { errors })
    }
    const { destinations } = this.#request.requester
    const hidden = this.#routed(envelope).find(({ destination }) => !maySee(destinations, destination))
    if (hidden === undefined) return { envelope, rejected }
    throw new Problem(
      HTTP_PROBLEMS.notPermitted,
      `the token is limited to the destinations ${destinations ?? ''}: not ${hidden.destination}`,
    )
  }

  /** The recipients that the suppression list refuses, each with its entry in words. */
  async #suppressed({ sender, recipients }: Envelope): Promise<ReadonlyMap<string, string>> {
    const port = this.#view.submissions()
    const found = await Promise.all(recipients.map(async ({ address }) => ({ address, one: await port.suppressed(sender, address) })))
    const refused = new Map<string, string>()
    for (const { address, one } of found) {
      if (one === undefined) continue
      port.reportSuppressed(one, sender, address)
      if (one.isRefused) refused.set(address, listedText(one.entry, this.#view.clock.wall))
    }
    return refused
  }

  #routed({ sender, recipients }: Envelope): AcceptedJson['recipients'] {
    const port = this.#view.submissions()
    return recipients.map(({ address }) => ({ address, destination: port.destinationOf(address, sender) }))
  }

  async #queue({ envelope, rejected }: AdmittedEnvelope, content: AsyncIterable<Uint8Array>, key: string | null): Promise<Answer> {
    const recipients = this.#routed(envelope)
    const accepted = (ofClass: string | undefined): AcceptedJson => ({
      queue_id: receiver.queueId,
      message_id: receiver.messageId ?? null,
      recipients,
      rejected: rejected.map(({ address, reason }) => ({ address, reason })),
      class: ofClass,
    })
    const keep =
      key === null
        ? undefined
        : (_: string | undefined, ofClass: string | undefined) => ({ ...this.#identity(key), answer: JSON.stringify(accepted(ofClass)) })
    const declaredSize = Number(this.#request.headers['content-length'] ?? 0)
    const receiver = this.#view.submissions().open({ envelope, client: clientOf(this.#request), declaredSize, keep })
    try {
      await write(content, receiver)
    } catch (error) {
      await receiver.abandon()
      throw error
    }
    try {
      return concluded(await receiver.end(), accepted)
    } catch (error) {
      const kept = error instanceof RequestRepeated && key !== null ? await this.#view.reader.records.requests.find(key) : undefined
      if (kept === undefined || key === null) throw error
      return this.#repeated(key, kept)
    }
  }

  /** The answer to the first request with the key. */
  #repeated(key: string, kept: KeptRequest): Answer {
    assertSame(this.#identity(key), kept)
    return acceptedAnswer(JSON.parse(kept.answer) as AcceptedJson, true)
  }
}

/** Throws Problem for a class that the configuration does not have. */
function assertClass({ class: name }: Envelope, { loaded }: QueueView): void {
  const { class: classes } = loaded().config
  if (name === undefined || classes.has(name)) return
  const known = classes.size === 0 ? 'there are no classes' : `the classes are ${[...classes.keys()].join(', ')}`
  throw invalidPart('/class', `unknown class ${JSON.stringify(name)}: ${known}`)
}

function concluded(acceptance: Acceptance, accepted: (ofClass: string | undefined) => AcceptedJson): Answer {
  switch (acceptance.kind) {
    case 'queued':
      return acceptedAnswer(accepted(acceptance.class), false)
    case 'refused':
      throw problemOf(acceptance.reply)
    case 'unknown':
      throw new Problem(
        HTTP_PROBLEMS.unavailable,
        'the commit of the message was not answered, and it may be queued: repeat the request with the same Idempotency-Key',
        retryIn(30),
      )
  }
}

/** The largest body: a message of message_size_limit. */
function largest(view: QueueView): number {
  const { message_size_limit: limit } = view.loaded().config
  return limit === 0 ? UNLIMITED : limit * JSON_GROWTH + JSON_REST
}

export const submissionRoute = (view: QueueView): ApiRoute =>
  apiRoute({
    method: 'POST',
    path: '/messages',
    role: 'sender',
    summary: 'Queue a message',
    about:
      'The answer 202 is sent when the message is on disk. A body of the type message/rfc822 is the content, with the envelope in the query, or in X-Envelope-From and X-Envelope-To; a JSON body is composed. An address has a domain, except postmaster: `myorigin` is not appended. Missing Date, From and Message-Id are added, and the size limit of SMTP applies. All recipients are accepted or none, unless `partial` is set. A client that sends a message again after a lost answer, with the same Idempotency-Key, gets the queue id of the first one.',
    query: envelopeQuery,
    headers: {
      'Idempotency-Key': 'a key that the client chooses: a message that is sent again with the same key within 24 hours is queued once',
      'X-Envelope-From': 'envelope sender, when the query has none',
      'X-Envelope-To': 'recipients with commas between them, when the query has none',
    },
    body: streamBody([RFC822, JSON_TYPE], () => largest(view)),
    example: {
      envelope: { from: 'bounces@example.com', to: ['ann@example.net'] },
      from: 'App <app@example.com>',
      to: 'Ann <ann@example.net>',
      subject: 'Your order',
      text: 'It is on its way.',
      attachments: [{ name: 'order.txt', type: 'text/plain', content: 'T3JkZXIgNwo=' }],
    },
    bodies: { [RFC822]: null, [JSON_TYPE]: compositionShape },
    answers: { 202: { about: 'the message is on disk', shape: acceptedShape } },
    problems: [RECIPIENTS, TIMES, REFUSED, KEY_REUSED, NO_SPACE, QUEUE_FULL, SHARE_FULL, HELD_FULL, QUOTA_EXCEEDED],
    handler: (request) => new Submitting(view, request).answer(),
  })
