/**
 * Sends mail of the history again, as an operation: a new message to the failed recipients of each message, each of them once. The history
 * notes it in the commit that queues the message, so that an operation which ended early is repeated without effect on what it has sent.
 * Destinations are those of the history: routing and aliases are not applied again.
 */
import type { MessageSigning } from '../dkim/message-signing.ts'
import { storedSignatures, withPrepended } from '../dkim/stored-signature.ts'
import { timeOfSignature } from '../dkim/signer.ts'
import { queueIdOf, type Message } from '../mail/message.ts'
import type { SmtpReply } from '../mail/smtp-reply.ts'
import type { Published } from '../outbox/event-data.ts'
import type { Actor, IdempotentRequest } from '../store/records/audit-log.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { Suppressions } from '../suppression/suppressions.ts'
import { SECOND, seconds, sleep, type Clock, type Duration } from '../system/clock.ts'
import type { Events } from '../telemetry/events.ts'
import type { PreparedMessage } from '../bounce/notice-writer.ts'
import type { Intake } from './intake/intake.ts'
import type { Origin } from './intake/share-key.ts'
import { HeaderEnd } from './content-parts.ts'
import type { OperationJobs, StartedOperation } from './operation-jobs.ts'
import { RESEND, type OperationSummary } from './operation-request.ts'
import type { ResendRate } from './resend-rate.ts'
import {
  noneLeftOut,
  resendable,
  resendPlan,
  type LeftOut,
  type Resendable,
  type ResendPlan,
  type ResendTerms,
} from './resend-selection.ts'

interface ResendRequest extends ResendTerms, Actor {
  /** Null for no limit. */
  readonly rate: ResendRate | null
  /** The request, for the audit log. */
  readonly words: string
  readonly reason: string | null
  readonly request: IdempotentRequest | null
}

/** Result of sending mail again. */
export interface ResendSummary extends OperationSummary, Readonly<LeftOut> {
  /** Number of recipients of the changed messages. */
  readonly recipients: number
}

/** No selected recipient can be sent again (EX_DATAERR). */
export class NothingToResend extends Error {
  override readonly name = 'NothingToResend'
  readonly exitCode = 65

  constructor({ sentBefore, withoutContent, requeued, suppressed }: LeftOut, unknown: readonly string[]) {
    const why = [
      ...(sentBefore === 0 ? [] : [`failed recipients that were sent again before: ${sentBefore}`]),
      ...(withoutContent === 0 ? [] : [`failed recipients whose content is not kept (returned_content_retention): ${withoutContent}`]),
      ...(requeued === 0 ? [] : [`failed recipients whose content went on with the others when these were requeued: ${requeued}`]),
      ...(suppressed === 0 ? [] : [`failed recipients on the suppression list (deferd suppression remove): ${suppressed}`]),
      ...(unknown.length === 0 ? [] : [`ids that the history does not have: ${unknown.length}`]),
    ]
    super(`nothing can be sent again: ${why.length === 0 ? 'no failed recipient is selected' : why.join('; ')}`)
  }
}

/** The queue has no room for more mail (EX_TEMPFAIL). */
class NoRoom extends Error {
  override readonly name = 'NoRoom'
  readonly exitCode = 75
}

/** A client waits no longer for a plan, or for the first message that can be sent again. */
const SELECTION_TIME: Duration = seconds(30)

/** The selection was not read in SELECTION_TIME (EX_TEMPFAIL). */
class SelectionTooLong extends Error {
  override readonly name = 'SelectionTooLong'
  readonly exitCode = 75

  constructor() {
    super(`the history was not read within ${SELECTION_TIME / SECOND} s: select less, such as by the time at which mail left the queue`)
  }
}

/** Parts of the relay that queue mail. */
export interface MailEntry {
  readonly intake: Pick<Intake, 'begin' | 'refusal' | 'admit' | 'settled' | 'prepare'>
  /** Null without DKIM tables. */
  readonly signing: () => MessageSigning | null
  /** smtp_line_length_limit */
  readonly lineLimit: () => number
  readonly suppressions: Pick<Suppressions, 'find' | 'report'>
}

interface ResendDeps extends MailEntry {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly clock: Clock
  readonly events: Events
  readonly jobs: OperationJobs
}

/** A message of a round, which is committed or withdrawn. */
interface Prepared {
  readonly of: Resendable
  readonly message: Message
  readonly happened: Published
  readonly prepared: PreparedMessage
}

/** Messages of a round while a rate holds: those of a second, so that the rate is even. */
const roundOf = (rate: ResendRate | null): number =>
  rate === null ? Infinity : Math.max(1, Math.floor((rate.messages * 1_000) / rate.per))

export class Resending {
  readonly #deps: ResendDeps

  constructor(deps: ResendDeps) {
    this.#deps = deps
  }

  /** Rejects with SelectionTooLong, and when the client has left. */
  plan(terms: ResendTerms, signal?: AbortSignal): Promise<ResendPlan> {
    return resendPlan(this.#deps, terms, this.#limit(signal))
  }

  /** Begins to send mail again. Rejects as `plan` does before it has begun, with NothingToResend, and with RequestRepeated when the request was carried out before. */
  async start(request: ResendRequest, signal?: AbortSignal): Promise<StartedOperation<ResendSummary>> {
    await this.#assertAny(request, this.#limit(signal))
    const { who, requestId, words, reason, request: key } = request
    const terms = { at: this.#deps.clock.now(), who, requestId, action: RESEND, arguments: words, reason, request: key }
    const record = { ...terms, expected: null, undoUntil: null, undoes: null }
    return this.#deps.jobs.carry(record, (operation, stopping) => this.#rounds(operation, request, stopping))
  }

  #limit(signal?: AbortSignal): () => void {
    const { clock } = this.#deps
    const until = clock.monotonic() + SELECTION_TIME
    return () => {
      signal?.throwIfAborted()
      if (clock.monotonic() >= until) throw new SelectionTooLong()
    }
  }

  async #assertAny(terms: ResendTerms, mayGoOn: () => void): Promise<void> {
    const leftOut = noneLeftOut()
    const unknown: string[] = []
    const selecting = { leftOut, unknown, listed: () => undefined, size: 1, mayGoOn }
    for await (const [first] of resendable(this.#deps, terms, selecting)) if (first !== undefined) return
    throw new NothingToResend(leftOut, unknown)
  }

  async #rounds(operation: number, request: ResendRequest, isStopped: () => boolean): Promise<ResendSummary> {
    const { clock, jobs, suppressions } = this.#deps
    const leftOut = noneLeftOut()
    const unknown: string[] = []
    let [matched, changed, recipients] = [0, 0, 0]
    for await (const round of resendable(this.#deps, request, {
      leftOut,
      unknown,
      listed: (one) => suppressions.report(one, one.sender, one.recipient),
      size: roundOf(request.rate),
      mayGoOn: () => undefined,
    })) {
      matched += round.length
      const sent = await this.#round(round, { operation, matched, again: request.again })
      if (sent === null) throw await jobs.cancelled(operation)
      changed += sent.length
      recipients += sent.reduce((sum, one) => sum + one.recipients.length, 0)
      if (isStopped()) throw new NoRoom(`the daemon stops: ${changed} messages were sent again; repeat the command for the others`)
      if (request.rate !== null) await pause(clock, (round.length * request.rate.per) / request.rate.messages, isStopped)
    }
    return { matched, changed, recipients, inTransfer: 0, unknown, ...leftOut }
  }

  /** The messages that were sent again; null when the operation has ended. */
  async #round(
    round: readonly Resendable[],
    { operation, matched, again }: { readonly operation: number; readonly matched: number; readonly again: boolean },
  ): Promise<readonly Resendable[] | null> {
    const { store, clock, events, intake } = this.#deps
    const ready: Prepared[] = []
    try {
      for (const one of round) ready.push(await this.#prepare(one))
      const orders = ready.map(({ of: { details, recipients }, prepared }) => ({
        message: details.message.id,
        recipients: recipients.map(({ id }) => id),
        again,
        entry: prepared.entry,
      }))
      const results = await store.departed.resend(orders, { operation, at: clock.now(), matched })
      for (const [n, { prepared, happened }] of ready.entries()) {
        if (results?.[n] !== true) continue
        events.emit(happened)
        prepared.committed()
      }
      const isSent = (n: number): boolean => results?.[n] === true
      for (const [n, { prepared }] of ready.entries()) if (!isSent(n)) prepared.withdrawn()
      return results === null ? null : ready.flatMap(({ of }, n) => (isSent(n) ? [of] : []))
    } catch (error) {
      for (const { prepared } of ready) prepared.withdrawn()
      throw error
    } finally {
      for (const { message } of ready) intake.settled(message.id, true)
    }
  }

  /** Throws NoRoom when the limits of the queue refuse the message. */
  async #prepare(one: Resendable): Promise<Prepared> {
    const { intake } = this.#deps
    const { details, recipients } = one
    const { id, arrivedAt } = intake.begin()
    const original = details.message
    const origin = originOf(original)
    assertRoom(await intake.refusal(original.size, origin, false))
    const admitted = intake.admit(id, original.size, origin)
    if ('refusal' in admitted) assertRoom(admitted.refusal)
    // The header that names a share is not stored.
    const share = 'refusal' in admitted ? undefined : (admitted.share ?? original.share)
    try {
      const message = await this.#signed(one, { ...renewed(original), id, createdAt: arrivedAt, arrivedAt, share })
      const entry = { message, recipients, content: [] }
      const happened: Published = {
        kind: 'accepted',
        message,
        recipients: recipients.map(({ address }) => address),
        client: null,
        originalId: queueIdOf(original),
      }
      return { of: one, message, happened, prepared: intake.prepare(entry, happened) }
    } catch (error) {
      intake.settled(id, false)
      throw error
    }
  }

  /** The message with its header fields, which are signed anew when they were signed. */
  async #signed({ kept }: Resendable, message: Omit<Message, 'size'>): Promise<Message> {
    const { others, digest } = storedSignatures(kept.headers ?? '')
    const bare = { ...message, size: kept.size }
    const signing = this.#deps.signing()
    if (signing === null || digest === null) return withPrepended(bare, others)
    const header = Buffer.concat([Buffer.from(others), await this.#header(message)])
    const signedAt = timeOfSignature(this.#deps.clock.wall.of(message.createdAt))
    return withPrepended(bare, `${await signing.again(header, { ...digest, signedAt }, this.#deps.lineLimit())}${others}`)
  }

  /** The header of a content, without the empty line after it. */
  async #header({ contentId }: Pick<Message, 'contentId'>): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    const end = new HeaderEnd()
    for (let index = 0; ; index++) {
      const chunk = await this.#deps.reader.readChunk({ contentId }, index)
      if (chunk === undefined) return Buffer.concat(parts)
      const split = end.take(chunk)
      parts.push(chunk.subarray(0, split))
      if (split < chunk.length) return Buffer.concat(parts)
    }
  }
}

/** Waits in steps of a second, so that a stop need not wait. */
async function pause(clock: Clock, time: Duration, isStopped: () => boolean): Promise<void> {
  for (let left = time; left > 0 && !isStopped(); left -= SECOND) await sleep(clock, Math.min(left, SECOND))
}

function assertRoom(refusal: SmtpReply | undefined): void {
  if (refusal !== undefined)
    throw new NoRoom(
      `mail is refused (${refusal.code} ${refusal.status ?? ''} ${refusal.text}): repeat the command when the queue has room`,
    )
}

/** Members that a message keeps when it is sent again: all but its ids, its times, its own limits, and what is computed anew. */
const KEPT: Readonly<Record<keyof Message, boolean>> = {
  id: false,
  createdAt: false,
  arrivedAt: false,
  size: false,
  prependedHeaders: false,
  share: false,
  maxAttempts: false,
  notBefore: false,
  scheduled: false,
  holdRequest: false,
  expires: false,
  deliverBy: false,
  byMode: false,
  sender: true,
  contentId: true,
  ret: true,
  envid: true,
  smtputf8: true,
  bodyType: true,
  messageId: true,
  subject: true,
  fromHeader: true,
  client: true,
  saslUsername: true,
  class: true,
}

const renewed = (message: Message): Omit<Message, 'size'> =>
  Object.fromEntries(Object.entries(message).filter(([name]) => KEPT[name as keyof Message])) as unknown as Omit<Message, 'size'>

const originOf = ({ sender, saslUsername, client }: Message): Origin => ({
  sender,
  user: saslUsername,
  address: client === undefined ? null : (/\[([^\]]+)\]$/.exec(client)?.[1] ?? null),
})
