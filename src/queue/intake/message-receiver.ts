/**
 * Receives one message: has its content pass the steps of arriving mail, splits it into chunks, and stages long content while the client sends it.
 * The message is queued when `end` commits it, and not before.
 */
import type { Envelope } from '../../mail/envelope.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import { NO_VERDICT, redirected, type Verdict } from '../../checks/checked-content.ts'
import { LookupFailed } from '../../rewriting/lookup-table.ts'
import { ArrivingContent, type ArrivingFacts, type ArrivingLimits } from './arriving-content.ts'
import { WRITE_ERROR, type Intake } from './intake.ts'
import { LOOKUP_FAILED } from './message-lookups.ts'
import { releasedAt, type Message } from '../../mail/message.ts'
import type { MessageTimes } from '../../mail/message-times.ts'
import type { Charged, SubmittedMail } from './quotas.ts'
import type { ClassChoice } from './class-choice.ts'
import type { NamedShares, Origin } from './share-key.ts'
import { StagedContent } from './staged-content.ts'
import { RequestRepeated } from '../../store/records/audit-log.ts'
import type { NewMessage } from '../../store/new-message.ts'
import { OutcomeUnknown, StoreUnavailable } from '../../store/queue-store.ts'
import { withPrepended } from '../../dkim/stored-signature.ts'

/** Result of a submission. */
export type Acceptance =
  /** `class`: the class of the message; absent without classes. */
  | { readonly kind: 'queued'; readonly queueId: string; readonly class?: string | undefined }
  /** `isLogged`: the log has the reason, from a check of the content. */
  | { readonly kind: 'refused'; readonly reply: SmtpReply; readonly isLogged?: boolean }
  /** The commit of the message was not answered: it may be queued. The client must get no reply, so that it repeats the message. */
  | { readonly kind: 'unknown' }

/** The methods of Intake that the receiver uses. */
export type IntakePort = Pick<
  Intake,
  'begin' | 'stageFrom' | 'stage' | 'unstage' | 'admit' | 'admitHeld' | 'charge' | 'chargeDiscarded' | 'settled' | 'take'
>

export interface ReceiverFacts extends ArrivingFacts {
  readonly identity: ReturnType<Intake['begin']>
  readonly envelope: Envelope
  /** The envelope before rewriting. */
  readonly given: { readonly sender: string; readonly recipients: number }
  /** The times that the client has named. */
  readonly times: MessageTimes
  /** Maximum size of the content in bytes; 0 for no limit. */
  readonly sizeLimit: number
  /** Size that the client declared (RFC 1870), in bytes; 0 for none. */
  readonly declaredSize: number
  /** Decides about the class; null without classes. */
  readonly classes: ClassChoice | null
  /** Class of the listener; empty for none. */
  readonly listenerClass: string
  /** The request that must have its effect once, with the answer to it; null without one. */
  readonly keep: KeepRequest | null
  readonly submitter: Pick<Parameters<Intake['take']>[0], 'client' | 'uid' | 'saslUsername' | 'saslMethod' | 'upstream' | 'maildropFile'>
}

/** Returns the request that queues a message, which is kept with it, when the content is complete. */
export type KeepRequest = (messageId: string | undefined, ofClass: string | undefined) => NonNullable<NewMessage['request']>

export interface MessageReceiverDeps {
  readonly intake: IntakePort
  readonly limits: ArrivingLimits & { readonly hops: number }
  readonly shares: NamedShares
  /** Records that a message is discarded. */
  readonly discarded: (facts: ReceiverFacts, messageId: string | undefined) => void
  /** Logs the reason why a lookup for a message has no usable result. */
  readonly lookupFailed: (queueId: string, reason: string) => void
  /** Logs internal errors: bugs, and staged content that could not be deleted. */
  readonly report: (what: string, error: unknown) => void
}

export const TOO_BIG: SmtpReply = { code: 552, status: '5.3.4', text: 'Error: message file too big' }
const TOO_MANY_HOPS: SmtpReply = { code: 554, status: '5.4.0', text: 'Error: too many hops' }

type Progress =
  | { readonly kind: 'receiving' }
  /** The content that follows is ignored. `isLogged`: a check of the content has refused it. */
  | { readonly kind: 'refused'; readonly reply: SmtpReply; readonly isLogged: boolean }
  /** The content is not wanted any more. */
  | { readonly kind: 'abandoned' }

export class MessageReceiver {
  readonly #facts: ReceiverFacts
  readonly #deps: MessageReceiverDeps
  readonly #content: StagedContent
  #progress: Progress = { kind: 'receiving' }
  /** The steps of the content. */
  readonly #arriving: ArrivingContent
  #class: string | undefined
  #received = 0

  constructor(facts: ReceiverFacts, deps: MessageReceiverDeps) {
    this.#facts = facts
    this.#deps = deps
    this.#content = new StagedContent({
      intake: deps.intake,
      id: facts.identity.id,
      declaredSize: facts.declaredSize,
      refuse: (reply) => this.refuse(reply),
      failed: (error) => this.#failed(error),
    })
    this.#arriving = new ArrivingContent(facts, {
      limits: deps.limits,
      keep: (bytes) => this.#content.add(bytes),
      isWanted: () => !this.#isOver,
      refuse: (reply) => this.#refuse(reply, true),
      headerEnds: (hops) => this.#requireFewHops(hops),
    })
  }

  /** Octets of the content received so far, without the Received field. */
  get octets(): number {
    return this.#received
  }

  get queueId(): string {
    return this.#facts.identity.queueId
  }

  /** The Message-Id, as received or as added; undefined before the end of the header, and without one. */
  get messageId(): string | undefined {
    return this.#arriving.messageId
  }

  /**
   * Adds the next bytes, with CRLF line ends. When a promise is returned, the caller should stop reading until the promise
   * resolves.
   */
  write(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    let waits: Promise<void> | undefined
    for (const piece of pieces) waits = this.#take(asBuffer(piece))
    return waits === undefined ? this.#makeRoom() : waits.then(() => this.#makeRoom())
  }

  #makeRoom(): Promise<void> | undefined {
    // Frees the space of a refused message for other mail although the client is still sending.
    if (this.#progress.kind === 'refused') return this.#content.isStaged ? this.abandon() : undefined
    return this.#content.makeRoom()
  }

  /** Settles when the store has the chunks that were given to it, or has failed to keep them; null when none are on their way. */
  get staging(): Promise<void> | null {
    return this.#content.staging
  }

  /** The reply with which the message will be refused; undefined while the message is acceptable. */
  get refusal(): SmtpReply | undefined {
    return this.#progress.kind === 'refused' ? this.#progress.reply : undefined
  }

  /** Refuses the message with this reply, independent of the content that follows. Later refusals are ignored. */
  refuse(reply: SmtpReply): void {
    this.#refuse(reply, false)
  }

  #refuse(reply: SmtpReply, isLogged: boolean): void {
    if (this.#isOver) return
    this.#progress = { kind: 'refused', reply, isLogged }
    this.#content.clear()
  }

  /** True when the content that follows is ignored. */
  get #isOver(): boolean {
    return this.#progress.kind === 'refused' || this.#progress.kind === 'abandoned'
  }

  /**
   * Ends the content. Resolves with `queued` when the message is on disk. Rejects with RequestRepeated when its request was carried out
   * before; nothing is then queued.
   */
  async end(): Promise<Acceptance> {
    await this.#arriving.end()
    await this.#content.staging
    const outcome = this.#isOver ? undefined : await this.#commit()
    if (outcome !== undefined) return outcome
    await this.abandon()
    if (this.#progress.kind !== 'refused') throw new Error(`${this.queueId}: the end of an abandoned content`)
    const { reply, isLogged } = this.#progress
    return { kind: 'refused', reply, ...(isLogged ? { isLogged } : {}) }
  }

  /** Deletes the staged content. Called when the client has disconnected or the message is refused. */
  async abandon(): Promise<void> {
    if (this.#progress.kind !== 'refused') this.#progress = { kind: 'abandoned' }
    try {
      await this.#content.discard()
    } catch (error) {
      // A failure does no damage, because contents that belong to no message are deleted when the queue is opened.
      this.#deps.report(`${this.queueId}: cannot remove a staged content`, error)
    }
  }

  #take(piece: Buffer): Promise<void> | undefined {
    if (this.#isOver) return undefined
    this.#received += piece.byteLength
    const { sizeLimit } = this.#facts
    if (sizeLimit > 0 && this.#received > sizeLimit) this.refuse(TOO_BIG)
    else {
      const waits = this.#arriving.write(piece)
      this.#requireFewHops(this.#arriving.hops)
      return waits
    }
    return undefined
  }

  /** Refuses a message that has passed too many relays (hopcount_limit). */
  #requireFewHops(hops: number): void {
    if (hops >= this.#deps.limits.hops) this.refuse(TOO_MANY_HOPS)
  }

  /** Returns undefined when the message is refused. */
  async #commit(): Promise<Acceptance | undefined> {
    const { intake } = this.#deps
    const { id } = this.#facts.identity
    if (this.#verdict.discard) return this.#discard()
    let outcome: Acceptance | undefined
    try {
      this.#class = this.#chosenClass()
      const tooMany = this.#facts.times.scheduled === true ? await intake.admitHeld(id, this.#origin) : undefined
      const admitted = tooMany === undefined ? intake.admit(id, this.#content.size, this.#sharing) : { refusal: tooMany }
      const charging = 'refusal' in admitted ? admitted : intake.charge(id, this.#submitted)
      const charged = charging instanceof Promise ? await charging : charging
      if ('refusal' in admitted) this.refuse(admitted.refusal)
      else if (charged !== undefined && 'refusal' in charged) this.refuse(charged.refusal)
      else outcome = await this.#queue(admitted.share, charged)
    } catch (error) {
      if (error instanceof RequestRepeated) throw error
      if (error instanceof LookupFailed) this.#lookupFailed(error)
      else this.#failed(error)
    } finally {
      intake.settled(id, outcome !== undefined)
    }
    return outcome
  }

  /** Throws LookupFailed. */
  #chosenClass(): string | undefined {
    const { classes, listenerClass, envelope } = this.#facts
    return classes?.classOf({ ...this.#origin, listenerClass, asked: envelope.class ?? this.#arriving.asked })
  }

  get #origin(): Origin {
    const { client, saslUsername: user } = this.#facts.submitter
    return { sender: this.#facts.envelope.sender, user, address: client?.address ?? null }
  }

  /** The origin that decides about the share. */
  get #sharing(): Origin {
    return this.#deps.shares.known(this.#origin, this.#arriving.keyFields)
  }

  get #submitted(): SubmittedMail {
    const { given, times } = this.#facts
    return {
      origin: { ...this.#origin, sender: given.sender, class: this.#class, fields: this.#arriving.keyFields },
      recipients: given.recipients,
      expires: times.expires,
    }
  }

  async #queue(share: string | undefined, charged: ChargedMail | undefined): Promise<Acceptance | undefined> {
    const { identity, envelope, submitter, signing } = this.#facts
    const times = heldTimes(this.#facts.times, charged)
    const { client, saslUsername } = submitter
    const { texts } = this.#arriving
    const queued: Message = {
      id: identity.id,
      createdAt: identity.arrivedAt,
      arrivedAt: identity.arrivedAt,
      sender: envelope.sender,
      size: this.#content.size,
      contentId: identity.id,
      ret: envelope.ret,
      envid: envelope.envid,
      smtputf8: envelope.smtputf8 ?? false,
      // By the content: clients declare BODY=7BIT for 8-bit content, and the reverse (RFC 6152 §3).
      bodyType: this.#arriving.isEightBit ? '8bitmime' : envelope.body === undefined ? undefined : '7bit',
      messageId: this.#arriving.messageId,
      subject: texts.subject,
      fromHeader: texts.fromHeader,
      client: client === null ? undefined : `${client.name}[${client.address}]`,
      saslUsername,
      maxAttempts: envelope.maxAttempts,
      class: this.#class,
      share,
      ...times,
    }
    const { hold, redirect } = this.#verdict
    const recipients = redirect === undefined ? envelope.recipients : redirected(envelope.recipients, redirect)
    try {
      const message = signing === null ? queued : withPrepended(queued, await signing.end(releasedAt(queued)))
      const request = this.#facts.keep?.(this.#arriving.messageId, this.#class)
      await this.#deps.intake.take({
        message,
        recipients,
        hold,
        content: this.#content.takeAll(),
        request,
        charges: charged?.charges,
        ...submitter,
      })
      return this.#queued
    } catch (error) {
      if (error instanceof RequestRepeated) {
        await this.abandon()
        throw error
      }
      this.#failed(error)
      return error instanceof OutcomeUnknown ? { kind: 'unknown' } : undefined
    }
  }

  /** Treatment that the session and the content ask for. An address that the content asks for takes precedence. */
  get #verdict(): Readonly<Verdict> {
    const [session, content] = [this.#facts.handling ?? NO_VERDICT, this.#arriving.verdict]
    return {
      hold: session.hold || content.hold,
      discard: session.discard || content.discard,
      redirect: content.redirect ?? session.redirect,
    }
  }

  async #discard(): Promise<Acceptance | undefined> {
    try {
      this.#class = this.#chosenClass()
      const refusal = await this.#deps.intake.chargeDiscarded(this.#facts.identity.id, this.#submitted)
      if (refusal !== undefined) {
        this.refuse(refusal)
        return undefined
      }
    } catch (error) {
      if (error instanceof LookupFailed) this.#lookupFailed(error)
      else this.#failed(error)
      return undefined
    }
    this.#deps.discarded(this.#facts, this.#arriving.messageId)
    await this.abandon()
    return this.#queued
  }

  get #queued(): Acceptance {
    return { kind: 'queued', queueId: this.queueId, class: this.#class }
  }

  #lookupFailed({ message }: LookupFailed): void {
    this.#deps.lookupFailed(this.queueId, message)
    this.refuse(LOOKUP_FAILED)
  }

  /** Reports an internal error and refuses the message with 451. */
  #failed(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) this.#deps.report(`${this.queueId}: cannot take a message`, error)
    this.refuse(WRITE_ERROR)
  }
}

type ChargedMail = Exclude<Charged, { refusal: SmtpReply }>

/** The times of a message. A quota that holds it longer than its client replaces the request of the client. */
function heldTimes(times: MessageTimes, charged: ChargedMail | undefined): MessageTimes {
  const hold = charged?.hold ?? null
  if (hold === null || (times.notBefore ?? 0) >= hold.until) return times
  return { ...times, notBefore: hold.until, scheduled: true, holdRequest: hold.request }
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
