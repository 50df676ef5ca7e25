/**
 * Queues messages from the SMTP server, the HTTP API and local users, and reports about TLS. The intake assigns ids, routes and schedules
 * the recipients, and commits everything in one transaction. It then passes the admitted requests to the scheduler. MAILER-DAEMON commits
 * a notice that `prepare` has routed and scheduled.
 */
import { NO_CLASS } from '../../config/values/mail-classes.ts'
import type { DestinationPolicies } from '../../config/destination-policies.ts'
import type { NoticePort } from '../../bounce/notice-port.ts'
import type { PreparedMessage } from '../../bounce/notice-writer.ts'
import type { Settings } from '../../config/destination-settings.ts'
import { errorMessage } from '../../system/caught-error.ts'
import type { Clock, Duration, QueueTime } from '../../system/clock.ts'
import type { EnvelopeRecipient } from '../../mail/envelope.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import type { Published } from '../../outbox/event-data.ts'
import type { EventRecorder } from '../../outbox/event-recorder.ts'
import type { ClientName, UpstreamMessage } from '../../mail/client-name.ts'
import type { Events } from '../../telemetry/events.ts'
import {
  expiryOf,
  startOf,
  aliasDestination,
  packRequests,
  queueIdOf,
  recipientId,
  type ContentId,
  type DestinationName,
  type LeasedMail,
  type Message,
  type MessageId,
} from '../../mail/message.ts'
import type { Admission } from '../scheduler/admission.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import { bytesOf } from '../../store/chunks.ts'
import type { NewMessage, NewRecipient } from '../../store/new-message.ts'
import { StoreUnavailable, type QueueStore } from '../../store/queue-store.ts'
import type { StoreHealth } from '../../store/store-health.ts'
import type { ContentCache } from './content-cache.ts'
import { noRoom, type Admitted, type QueueLimits } from './queue-limits.ts'
import type { Charged, Quotas, SubmittedMail } from './quotas.ts'
import type { ScheduledLimit } from './scheduled-limit.ts'
import type { Origin } from './share-key.ts'
import { SpaceAccount } from './space-account.ts'

/** Identity of a new message. */
export interface NewIdentity {
  readonly id: MessageId
  readonly queueId: string
  readonly arrivedAt: QueueTime
}

/** A message to queue. */
export interface Entry {
  readonly message: Message
  /** `destination` is absent for a recipient that is to be routed. */
  readonly recipients: readonly (EnvelopeRecipient & { readonly destination?: DestinationName | undefined })[]
  /**
   * The content, or the part after the staged chunks, in chunks. The caller must not read or change the chunks after the call.
   */
  readonly content: readonly Uint8Array[]
  /** True to queue the message on hold. */
  readonly hold?: boolean | undefined
}

/** A message from a client or a local user. */
export interface Submitted extends Entry {
  /** Null for local submissions. */
  readonly client: ClientName | null
  readonly uid?: number | undefined
  readonly saslUsername?: string | undefined
  readonly saslMethod?: string | undefined
  readonly upstream?: UpstreamMessage | undefined
  /** Key of the maildrop file that held the message. The store commits the key with the message. */
  readonly maildropFile?: string | undefined
  /** The request that queues the message. The store commits it with the message. */
  readonly request?: NewMessage['request']
  readonly charges?: NewMessage['charges']
}

export interface IntakeDeps {
  readonly store: QueueStore
  readonly storeHealth: StoreHealth
  readonly scheduler: Scheduler
  readonly clock: Clock
  readonly events: Events
  readonly recorder: EventRecorder
  readonly contents: ContentCache
  readonly notices: Pick<NoticePort, 'waits'>
  readonly destinationOf: (address: string, sender: string) => DestinationName
  readonly policies: () => DestinationPolicies
  readonly limits: QueueLimits
  readonly scheduledLimit: ScheduledLimit
  readonly quotas: Quotas
  /** True while contents of returned mail are kept (returned_content_retention). */
  readonly keepsContent: () => boolean
  /** Number of bytes that must be free on the disk to accept mail: the larger of queue_minfree and 1.5 × message_size_limit. */
  readonly needed: () => number
}

/** Lifetime of mail in ms: bounce_queue_lifetime for mail from <>, maximal_queue_lifetime for other mail. */
export const lifetimeOf = (sender: string, settings: Settings): Duration =>
  sender === '' ? settings.bounce_queue_lifetime : settings.maximal_queue_lifetime

const NO_SPACE = noRoom('disk', 'Insufficient system storage')
/** Reply when the store cannot commit. */
export const WRITE_ERROR: SmtpReply = { code: 451, status: '4.3.0', text: 'Error: queue file write error' }

/**
 * Number of chunks that all long contents together gather before they are staged, and their smallest and largest number for one content. Each
 * commit costs a sync and writes pages of free lists and indexes besides the chunks: 20 chunks in one take 8 to 17 % less CPU time than in four.
 */
const GATHERED = 128
const FEWEST = 5
const MOST = 16

export class Intake {
  readonly #deps: IntakeDeps
  readonly #space: SpaceAccount
  /** Reply to all new mail; null while mail is accepted. */
  #refusal: SmtpReply | null = null

  constructor(deps: IntakeDeps) {
    this.#deps = deps
    this.#space = new SpaceAccount(deps.store.upkeep, deps.clock, (bytes) => this.#deleteKept(bytes))
  }

  /** Refuses all mail with a reply, also messages that are being received; null ends that. */
  refuseAll(reply: SmtpReply | null): void {
    this.#refusal = reply
  }

  /** Returns a new message id and its queue id. Throws StoreUnavailable when no reserved id is left. */
  begin(): NewIdentity {
    const arrivedAt = this.#deps.clock.now()
    const id = this.#deps.store.nextId()
    return { id, arrivedAt, queueId: queueIdOf({ id, createdAt: arrivedAt }) }
  }

  /** Number of complete chunks from which the receiver of a long content stages them, after the first ones. */
  get stageFrom(): number {
    return Math.max(FEWEST, Math.min(MOST, Math.floor(GATHERED / this.#space.arriving)))
  }

  /**
   * Keeps chunks of a long content before its message is complete; `left` is the number of bytes of the message that are still to
   * be stored, including `chunks`. Resolves with a refusal when the disk has no space for `left` bytes, else with undefined.
   * Rejects with StoreUnavailable.
   */
  async stage(content: ContentId, from: number, chunks: readonly Uint8Array[], left: number): Promise<SmtpReply | undefined> {
    if (!(await this.#space.promise(content, left))) return NO_SPACE
    const { store, contents } = this.#deps
    const bytes = bytesOf(chunks)
    await store.stage(content, from, chunks, contents.hold(content, from, chunks))
    this.#space.stored(content, bytes)
    return undefined
  }

  /**
   * Deletes a staged content. When the store cannot commit now, resolves at once, and the deletion is repeated until it is
   * committed.
   */
  async unstage(content: ContentId): Promise<void> {
    const { store, storeHealth, events, contents } = this.#deps
    this.#space.ended(content)
    contents.drop(content)
    try {
      await store.unstage(content)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      storeHealth
        .retryUntilCommitted(() => store.unstage(content))
        .catch((last: unknown) => {
          const text = `a staged content is left until the next start: ${errorMessage(last)}`
          events.emit({ kind: 'note', level: 'warning', text })
        })
    }
  }

  /**
   * The reply to MAIL when mail of this size, which is held back or not, cannot be queued now; undefined when mail can be queued. Returns a
   * promise only when the free space has to be read, a limit applies to mail that is held back, or there are quotas.
   */
  refusal(size: number, origin: Origin, isHeld: boolean): Promise<SmtpReply | undefined> | SmtpReply | undefined {
    const { scheduledLimit, quotas } = this.#deps
    const busy = this.#busy(size, origin)
    if (!isHeld && !quotas.isOn) return busy
    return writable(firstOf([busy, isHeld ? scheduledLimit.refusal(origin) : undefined, quotas.refusal(origin)]))
  }

  /** The reply to RCPT when a quota refuses so many recipients; undefined when none does. Returns a promise only when there are quotas. */
  recipientRefusal(origin: Origin, recipients: number): Promise<SmtpReply | undefined> | undefined {
    const { quotas } = this.#deps
    return quotas.isOn ? writable(firstOf([quotas.recipientRefusal(origin, recipients)])) : undefined
  }

  /** Deletes contents of returned mail, the oldest first, before mail is refused for lack of space. Resolves with false when there are none. */
  async #deleteKept(bytes: number): Promise<boolean> {
    const { store, keepsContent } = this.#deps
    if (!keepsContent()) return false
    const { bytes: kept } = await store.departed.dropKept({ until: 0, bytes: Infinity })
    for (let more = kept > 0; more;) ({ more } = await store.departed.dropKept({ until: 0, bytes: Math.max(0, kept - bytes) }))
    return kept > 0
  }

  #busy(size: number, origin: Origin): Promise<SmtpReply | undefined> | SmtpReply | undefined {
    const { storeHealth, needed, limits } = this.#deps
    if (this.#refusal !== null) return this.#refusal
    if (storeHealth.unavailable) return WRITE_ERROR
    const full = limits.refusal(size, origin)
    if (full !== undefined) return full
    const fits = this.#space.hasMoreThan(Math.max(needed(), size))
    return fits === true ? undefined : writable(fits.then((does) => (does ? undefined : NO_SPACE)))
  }

  /** Has the free space read again before the next message, as after a change of the disk. */
  spaceChanged(): void {
    this.#space.forget()
  }

  /** Rejects while mail is refused for lack of space, with the sizes in the message. */
  async assertSpace(): Promise<void> {
    const needed = this.#deps.needed()
    if (await this.#space.hasMoreThan(needed)) return
    const { available } = this.#space
    throw new Error(
      `mail is refused: ${megabytes(available)} MB are free for new mail, more than ${megabytes(needed)} MB are needed (queue_minfree, 1.5 × message_size_limit); free some disk space or delete mail`,
    )
  }

  /** Promises a place in the queue to a message whose content is complete, or refuses it. `settled` follows a promise. */
  admit(content: ContentId, size: number, origin: Origin): Admitted {
    return this.#deps.limits.admit(content, size, origin)
  }

  /** Promises a place among the messages that are held back, or returns the reply that refuses the message. `settled` follows. */
  admitHeld(content: ContentId, origin: Origin): Promise<SmtpReply | undefined> | undefined {
    return this.#deps.scheduledLimit.admit(content, origin)
  }

  /** Charges a message to the quotas that count it, or refuses it; undefined when none does. `settled` follows. */
  charge(content: ContentId, mail: SubmittedMail): Promise<Charged | undefined> | Charged | undefined {
    return this.#deps.quotas.admit(content, mail)
  }

  /** Charges a message that is discarded, or returns the reply that refuses it. Rejects with StoreUnavailable. */
  async chargeDiscarded(content: ContentId, mail: SubmittedMail): Promise<SmtpReply | undefined> {
    const { quotas, store } = this.#deps
    const charged = await quotas.admit(content, mail)
    if (charged === undefined) return undefined
    if ('refusal' in charged) return charged.refusal
    try {
      await store.records.quotaCounts.charge(charged.charges)
    } catch (error) {
      quotas.ended(content, false)
      throw error
    }
    quotas.ended(content, true)
    return undefined
  }

  /** Ends the promises to a message that may be queued, or is not going to be. */
  settled(content: ContentId, mayBeQueued: boolean): void {
    this.#deps.quotas.ended(content, mayBeQueued)
    this.#deps.limits.ended(content)
    this.#deps.scheduledLimit.ended(content, mayBeQueued)
  }

  /** Resolves when message, recipients, schedule and content are on disk, in one commit. Rejects with StoreUnavailable or RequestRepeated. */
  async take(entry: Submitted): Promise<void> {
    const { store, events } = this.#deps
    if (this.#refusal !== null) throw new StoreUnavailable(this.#refusal.text)
    const { message, client, uid, saslUsername, saslMethod, upstream } = entry
    const happened = acceptedEvent(entry, { client, uid, saslUsername, saslMethod, upstream })
    const admitted = this.prepare(entry, happened)
    const prepared = { ...admitted.entry, maildropFile: entry.maildropFile, request: entry.request, charges: entry.charges }
    const bytes = bytesOf(entry.content)
    try {
      await store.enqueue(prepared)
    } catch (error) {
      this.#space.ended(message.contentId)
      admitted.withdrawn()
      throw error
    }
    this.#space.stored(message.contentId, bytes)
    this.#space.ended(message.contentId)
    events.emit(happened)
    admitted.committed()
  }

  /** Routes and schedules a message. The caller commits the result. `happened` is the event of its acceptance. */
  prepare(given: Entry, happened = acceptedEvent(given, { client: null })): PreparedMessage {
    const { destinationOf, recorder, contents, scheduler, policies } = this.#deps
    const { recipients, content, hold = false } = given
    const { classes } = policies()
    const message =
      classes.defaultName === undefined ? given.message : { ...given.message, class: given.message.class ?? classes.defaultName }
    const events = recorder.of(happened)
    const byDestination = new Map<DestinationName, number>()
    const routed = recipients.map((recipient) => {
      const destination = recipient.destination ?? aliasDestination(recipient) ?? destinationOf(recipient.address, message.sender)
      byDestination.set(destination, (byDestination.get(destination) ?? 0) + 1)
      return { recipient, destination }
    })
    const admission = scheduler.admit(message, hold || message.scheduled === true ? NO_MAIL : byDestination)
    const dueAt = startOf(message)
    const expiries = new Map<DestinationName, QueueTime>()
    for (const destination of byDestination.keys()) expiries.set(destination, this.#expiryOf(message, destination))
    // A message that is sent again has its content in the store.
    const isKept = content.length > 0 && admission.hasAny && contents.keep(message, content)
    if (!isKept) contents.drop(message.contentId)
    const entry: NewMessage = {
      message,
      band: classes.bands.of(message.class),
      content,
      hold,
      ...(events === undefined ? {} : { events }),
      // Admitted mail keeps its content in memory for the delivery. The store takes over the buffers of all other mail.
      givesContent: !isKept,
      recipients: routed.map(({ recipient: { address, notify, orcpt }, destination }): NewRecipient => {
        const expiresAt = expiries.get(destination) ?? dueAt
        return { address, notify, orcpt, destination, dueAt: Math.min(dueAt, expiresAt), expiresAt, leased: admission.has(destination) }
      }),
    }
    return {
      entry,
      committed: () => this.#committed(entry, admission),
      withdrawn: () => {
        contents.drop(message.contentId)
        admission.withdrawn()
      },
    }
  }

  /** Passes the admitted recipients of a committed message, and the due times of the others, to the scheduler. */
  #committed(entry: NewMessage, admission: Admission): void {
    const { store, scheduler, policies } = this.#deps
    if (entry.hold === true) return
    const byDestination = Map.groupBy(leasesOf(entry), (lease) => lease.destination)
    const requests = [...byDestination].flatMap(([destination, leases]) =>
      packRequests(leases, store.leaseTerms(), policies().for(destination).settings.destination_recipient_limit),
    )
    admission.committed(requests)
    const waiting = entry.recipients.filter((one) => !one.leased)
    if (waiting.length === 0) return
    const band = entry.band ?? NO_CLASS
    const scheduled = entry.message.scheduled === true ? startOf(entry.message) : undefined
    if (scheduled === undefined) {
      this.#deps.notices.waits(entry.message)
      this.#reportDeferred(entry.message, waiting)
    }
    const due = new Map(waiting.map((one) => [one.destination, { destination: one.destination, dueAt: one.dueAt }]))
    scheduler.workAdded([...due.values()], {
      bands: [band],
      expiresAt: waiting.reduce((earliest, one) => Math.min(earliest, one.expiresAt), Infinity),
      scheduled,
    })
  }

  /** Reports recipients that begin to wait for a dead destination. */
  #reportDeferred(message: Message, waiting: readonly NewRecipient[]): void {
    const { scheduler, clock, events } = this.#deps
    const at = clock.now()
    for (const [destination, ofDestination] of Map.groupBy(waiting, (one) => one.destination)) {
      const siteStatus = scheduler.destinations.deadStatus(destination)
      if (siteStatus === undefined) continue
      const recipients = ofDestination.map(({ address }) => address)
      events.emit({ kind: 'deferred', message, destination, recipients, at, activatedAt: at, siteStatus })
    }
  }

  #expiryOf(message: Message, destination: DestinationName): QueueTime {
    return expiryOf(message, lifetimeOf(message.sender, this.#deps.policies().forMail(destination, message).settings))
  }
}

/** The mail of a message on hold, or of a scheduled one, that enters the active queue. */
const NO_MAIL: ReadonlyMap<DestinationName, number> = new Map()

type Accepted = Extract<Published, { readonly kind: 'accepted' }>

/** Event of a message that enters the queue. */
const acceptedEvent = ({ message, recipients }: Entry, origin: Omit<Accepted, 'kind' | 'message' | 'recipients'>): Accepted => ({
  kind: 'accepted',
  message,
  recipients: recipients.map(({ address }) => address),
  ...origin,
})

/** The first reply that refuses mail. */
async function firstOf(answers: readonly (Promise<SmtpReply | undefined> | SmtpReply | undefined)[]): Promise<SmtpReply | undefined> {
  return (await Promise.all(answers.map((one) => Promise.resolve(one)))).find((reply) => reply !== undefined)
}

/** WRITE_ERROR in place of StoreUnavailable. */
async function writable(asked: Promise<SmtpReply | undefined>): Promise<SmtpReply | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof StoreUnavailable) return WRITE_ERROR
    throw error
  }
}

const megabytes = (bytes: number): string => (Math.max(0, bytes) / 1e6).toFixed(1)

/** Leases of the admitted recipients of a new message. */
function leasesOf({ message, recipients }: NewMessage): LeasedMail[] {
  const leases: LeasedMail[] = []
  recipients.forEach(({ address, notify, orcpt, destination, dueAt, expiresAt, leased }, position) => {
    if (!leased) return
    const progress = { dueAt, expiresAt, steps: 0, attempts: 0 }
    const recipient = {
      id: recipientId(message.id, position),
      address,
      notify,
      orcpt,
      ...progress,
      last: null,
      warnings: 0,
      flushed: false,
    }
    leases.push({ message, destination, recipient, fresh: true, forcedExpire: false })
  })
  return leases
}
