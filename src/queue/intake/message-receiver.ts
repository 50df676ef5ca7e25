/**
 * Receives one message: completes the header, splits the content into chunks, and stages long content while the client sends it.
 * The message is queued when `end` commits it, and not before.
 */
import { isAscii } from 'node:buffer'
import type { Completion } from '../../mail/header-addresses.ts'
import type { Envelope } from '../../mail/envelope.ts'
import { NOT_SHOWN, shownFields, type ShownFields } from '../../mail/mime/shown-fields.ts'
import { maskControls, type SmtpReply } from '../../mail/smtp-reply.ts'
import type { ContentEntry, ContentStep } from '../../mail/content-step.ts'
import { EditedHeader, type ReadFields } from '../../mail/edited-header.ts'
import { CheckedContent, NO_VERDICT, redirected, type CheckReport, type ContentRules, type Verdict } from '../../checks/checked-content.ts'
import { LookupFailed } from '../../rewriting/lookup-table.ts'
import { WRITE_ERROR, type Intake } from './intake.ts'
import { LOOKUP_FAILED } from './message-lookups.ts'
import { releasedAt, type Message } from '../../mail/message.ts'
import type { MessageTimes } from '../../mail/message-times.ts'
import { missingFields, type Additions } from './missing-fields.ts'
import type { Charged, SubmittedMail } from './quotas.ts'
import type { ClassChoice } from './class-choice.ts'
import type { NamedShares, Origin } from './share-key.ts'
import { StagedContent } from './staged-content.ts'
import { RequestRepeated } from '../../store/records/audit-log.ts'
import type { NewMessage } from '../../store/new-message.ts'
import { OutcomeUnknown, StoreUnavailable } from '../../store/queue-store.ts'
import type { ArrivingMessage } from '../../dkim/message-signing.ts'
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

interface ReceiverLimits {
  /** Maximum octets of a header field (header_size_limit). */
  readonly headerField: number
  readonly hops: number
  /** Lower-case names of the header fields to remove. */
  readonly dropped: ReadonlySet<string>
  /** Whether Subject and From are kept (queue_index_headers). */
  readonly keepsTexts: boolean
  /** Lower-case names of the fields that are keys of quotas or shares. */
  readonly read: ReadonlySet<string>
}

/** Treatment of a message that access restrictions of its session ask for (Postfix access(5)). */
export interface Handling extends Readonly<Verdict> {
  /** Header fields to add before all others, without line ends. */
  readonly prepended: readonly string[]
}

export interface ReceiverFacts {
  readonly identity: ReturnType<Intake['begin']>
  readonly envelope: Envelope
  /** The envelope before rewriting. */
  readonly given: { readonly sender: string; readonly recipients: number }
  /** The times that the client has named. */
  readonly times: MessageTimes
  /** The Received field of this relay. */
  readonly trace: string
  /** Maximum size of the content in bytes; 0 for no limit. */
  readonly sizeLimit: number
  /** Size that the client declared (RFC 1870), in bytes; 0 for none. */
  readonly declaredSize: number
  /** Fields to add when they are missing; null when the mail is not local. */
  readonly additions: Additions | null
  /** Completes the addresses of the header; null when the mail is not local. */
  readonly completion: Completion | null
  /** Signs the message; null when it gets no signature. */
  readonly signing: ArrivingMessage | null
  /** Checks of the content; null without any. */
  readonly checks: ContentChecks | null
  /** Null for ordinary treatment. */
  readonly handling: Handling | null
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

/** Checks of one message. */
export interface ContentChecks {
  readonly rules: ContentRules<'body'>
  readonly report: Pick<CheckReport, 'took' | 'warn'>
}

export interface MessageReceiverDeps {
  readonly intake: IntakePort
  readonly limits: ReceiverLimits
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

/**
 * Maximum number of Message-Id characters that are kept, for the log and for threading: the maximum line length of RFC 5322
 * §2.1.1.
 */
const MESSAGE_ID_LIMIT = 998
/** Maximum number of characters of a header field that is the key of a quota or a share. */
const KEY_LIMIT = 255

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
  readonly #header: EditedHeader<'body'>
  /** The first step of the content. */
  readonly #entry: ContentEntry
  #messageId: string | undefined
  #texts: ShownFields = NOT_SHOWN
  #class: string | undefined
  #received = 0
  /** A byte above 127 was received. */
  #eightBit = false
  /** Examines the content; null without checks. */
  readonly #checked: CheckedContent<'body'> | null

  constructor(facts: ReceiverFacts, deps: MessageReceiverDeps) {
    this.#facts = facts
    this.#deps = deps
    const { dropped, headerField: fieldLimit, keepsTexts: readsTexts, read } = deps.limits
    this.#content = new StagedContent({
      intake: deps.intake,
      id: facts.identity.id,
      declaredSize: facts.declaredSize,
      refuse: (reply) => this.refuse(reply),
      failed: (error) => this.#failed(error),
    })
    const last = signed(facts.signing, this.#queuedContent())
    for (const field of facts.handling?.prepended ?? []) last.header(Buffer.from(`${field}\r\n`))
    this.#header = new EditedHeader(
      { dropped, fieldLimit, readsTexts, completion: facts.completion, request: facts.classes?.header ?? undefined, read },
      last,
      (fields) => this.#endHeader(fields),
    )
    this.#checked = facts.checks === null ? null : new CheckedContent(facts.checks.rules, this.#report(facts.checks), this.#header)
    this.#entry = this.#checked ?? this.#header
    const keepTrace = (bytes: Buffer): void => this.#content.add(bytes)
    if (this.#checked === null) keepTrace(Buffer.from(facts.trace))
    else this.#checked.trace(facts.trace, keepTrace)
  }

  #report({ report }: ContentChecks): CheckReport {
    return { ...report, refuse: (reply) => this.#refuse(reply, true) }
  }

  /** The last step: adds what is left to the content that will be queued. */
  #queuedContent(): ContentStep<'body'> {
    const keep = (bytes: Buffer): undefined => {
      if (this.#isOver || bytes.length === 0) return
      this.#eightBit ||= !isAscii(bytes)
      this.#content.add(bytes)
    }
    return { permits: 'body', header: keep, insert: keep, beginBody: keep, body: keep, end: () => undefined }
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
    return this.#messageId
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
    await this.#entry.end()
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
      const waits = this.#entry.write(piece)
      this.#requireFewHops()
      return waits
    }
    return undefined
  }

  /** Refuses a message that has passed too many relays (hopcount_limit). */
  #requireFewHops(): void {
    if (1 + this.#header.fields.hops >= this.#deps.limits.hops) this.refuse(TOO_MANY_HOPS)
  }

  /** Returns the fields that the header lacks. */
  #endHeader({ names, messageId, subject, from }: ReadFields): string {
    this.#requireFewHops()
    const { additions } = this.#facts
    const missing = additions === null ? null : missingFields(additions, names)
    this.#messageId = missing?.messageId ?? (messageId === undefined ? undefined : maskControls(messageId).slice(0, MESSAGE_ID_LIMIT))
    if (this.#deps.limits.keepsTexts) this.#texts = shownFields({ subject, from: from ?? missing?.from })
    return missing?.text ?? ''
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
    return classes?.classOf({ ...this.#origin, listenerClass, asked: envelope.class ?? this.#header.fields.asked })
  }

  get #origin(): Origin {
    const { client, saslUsername: user } = this.#facts.submitter
    return { sender: this.#facts.envelope.sender, user, address: client?.address ?? null }
  }

  /** The origin that decides about the share. */
  get #sharing(): Origin {
    return this.#deps.shares.known(this.#origin, this.#keyFields)
  }

  /** The header fields that are keys of quotas or shares. */
  get #keyFields(): ReadonlyMap<string, string> {
    return new Map([...this.#header.fields.read].map(([name, value]) => [name, maskControls(value).slice(0, KEY_LIMIT)]))
  }

  get #submitted(): SubmittedMail {
    const { given, times } = this.#facts
    return {
      origin: { ...this.#origin, sender: given.sender, class: this.#class, fields: this.#keyFields },
      recipients: given.recipients,
      expires: times.expires,
    }
  }

  async #queue(share: string | undefined, charged: ChargedMail | undefined): Promise<Acceptance | undefined> {
    const { identity, envelope, submitter, signing } = this.#facts
    const times = heldTimes(this.#facts.times, charged)
    const { client, saslUsername } = submitter
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
      bodyType: this.#eightBit ? '8bitmime' : envelope.body === undefined ? undefined : '7bit',
      messageId: this.#messageId,
      subject: this.#texts.subject,
      fromHeader: this.#texts.fromHeader,
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
      const request = this.#facts.keep?.(this.#messageId, this.#class)
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
    const [session, content] = [this.#facts.handling ?? NO_VERDICT, this.#checked?.verdict ?? NO_VERDICT]
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
    this.#deps.discarded(this.#facts, this.#messageId)
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

/** Adds the digest of what is queued to a step. */
function signed(signing: ArrivingMessage | null, next: ContentStep<'body'>): ContentStep<'body'> {
  if (signing === null) return next
  return {
    ...next,
    header: (bytes) => {
      signing.header(bytes)
      next.header(bytes)
    },
    insert: (field) => {
      signing.header(field)
      next.insert(field)
    },
    body: (bytes) => {
      signing.body(bytes)
      return next.body(bytes)
    },
  }
}
