/** Converts a queue file of Postfix to a message of deferd, with the positions of its recipients on the retry schedule. Pure. */
import { isAscii } from 'node:buffer'
import { nextWait } from '../../backoff/retry-policy.ts'
import type { DestinationPolicies, DestinationPolicy } from '../../config/destination-policies.ts'
import { parseAddress } from '../../mail/address-path.ts'
import { isInternational, quoteLocalPart } from '../../mail/address.ts'
import type { EnvelopeRecipient } from '../../mail/envelope.ts'
import { fieldsOf } from '../../mail/headers.ts'
import { aliasDestination, RECIPIENTS_PER_MESSAGE, type DestinationName, type Message, type MessageId } from '../../mail/message.ts'
import { keptMessageId, NOT_SHOWN, shownFieldsIn } from '../../mail/mime/shown-fields.ts'
import { maskControls, type DeliveryStatus } from '../../mail/smtp-reply.ts'
import { lifetimeOf } from '../../queue/intake/intake.ts'
import { inChunks } from '../../store/chunks.ts'
import type { NewMessage, NewRecipient, Tried } from '../../store/new-message.ts'
import type { Clock, Duration, QueueTime, WallTime } from '../../system/clock.ts'
import type { ReplacedAlias } from './delivery-log.ts'
import type { ReadFile, SpoolFile, SpoolLog } from './postfix-spool.ts'
import type { PostfixRecipient } from './postfix-message.ts'
import { UnusableQueueFile } from './queue-records.ts'

export interface TakeOverRules {
  readonly myorigin: string
  /** Whether Subject and From are kept (queue_index_headers). */
  readonly keepsTexts: boolean
  /** maximal_backoff_time in ms: the longest time until the next attempt. */
  readonly longestWait: Duration
  readonly destinationOf: (address: string, sender: string) => DestinationName
  readonly policies: DestinationPolicies
  /** Replaces aliases of local users. Postfix replaces them at delivery. */
  readonly expand: (recipients: readonly EnvelopeRecipient[]) => readonly EnvelopeRecipient[]
  /** Number from [0, 1) for policies with random waits. */
  readonly draw: (key: string) => number
}

/** A queue file with the logfiles of its deliveries. */
export interface Candidate extends ReadFile {
  readonly source: SpoolFile
  readonly deferLog: SpoolLog | null
  readonly bounceLog: SpoolLog | null
  /** Replaced aliases for which the sender must still get a success notice. */
  readonly aliases: readonly ReplacedAlias[]
}

export type QueueTimes = Pick<Clock, 'now' | 'wall'>

/** Key of a message in the store. The leading slash distinguishes it from the keys of the maildrop. */
export const keyOf = ({ source, message }: Pick<Candidate, 'source' | 'message'>): string => `/postfix/${source.id}/${message.arrival}`

export const isKeyOfSpool = (key: string): boolean => key.startsWith('/postfix/')

/**
 * The remaining recipients. A bounced recipient remains until its notice has been sent: the delivery is tried again, and the new outcome is
 * reported.
 */
export function remainingRecipients({ message, bounceLog }: Candidate): readonly PostfixRecipient[] {
  const owed = message.sender === '' ? undefined : bounceLog?.outcomes
  return message.recipients.filter(({ isDone, offset }) => !isDone || owed?.has(offset) === true)
}

/** The address in deferd's syntax. Throws UnusableQueueFile. */
export function addressOf(text: string, origin: string): string {
  const address = parseAddress(quoteLocalPart(text), origin)
  if (address !== undefined) return address
  throw new UnusableQueueFile(`its envelope has ${JSON.stringify(maskControls(text))}, which is no address`)
}

/** The message with its remaining recipients. Throws UnusableQueueFile. */
export function takenMessage(id: MessageId, candidate: Candidate, clock: QueueTimes, rules: TakeOverRules): NewMessage {
  const { message: given, source } = candidate
  const sender = given.sender === '' ? '' : addressOf(given.sender, rules.myorigin)
  const queueTime = (at: WallTime): QueueTime => Math.min(clock.wall.queueTime(at), clock.now())
  const [arrivedAt, createdAt] = [queueTime(given.arrivedAt), queueTime(given.createdAt)]
  const remaining = remainingRecipients(candidate)
  const envelope = remaining.map(({ address, notify, orcpt }) => ({ address: addressOf(address, rules.myorigin), notify, orcpt }))
  const recipients = [...rules.expand(envelope), ...replacedAliases(candidate, rules)]
  if (recipients.length > RECIPIENTS_PER_MESSAGE) throw new UnusableQueueFile(`it has more than ${RECIPIENTS_PER_MESSAGE} recipients`)
  const message: Message = {
    id,
    createdAt,
    arrivedAt,
    sender,
    size: given.content.length,
    contentId: id,
    ret: given.ret,
    envid: given.envid,
    smtputf8: given.smtputf8 || [sender, ...recipients.map(({ address }) => address)].some(isInternational),
    bodyType: isAscii(given.content) ? undefined : '8bitmime',
    messageId: messageIdOf(given.content),
    ...(rules.keepsTexts ? shownFieldsIn(given.content) : NOT_SHOWN),
  }
  const outcomes = new Map(envelope.map(({ address }, i) => [address, candidate.deferLog?.outcomes.get(remaining[i]?.offset ?? -1)]))
  const schedule = new Schedule(candidate, message, clock, rules)
  return {
    message,
    recipients: recipients.map((recipient) => schedule.recipient(recipient, outcomes.get(recipient.address))),
    content: inChunks(given.content),
    givesContent: true,
    hold: source.queue === 'hold',
    warnings: given.isWarned ? 1 : 0,
    maildropFile: keyOf(candidate),
  }
}

/** Aliases without a delivery of their own, for which the sender gets a success notice. */
function replacedAliases({ message, aliases }: Candidate, { myorigin }: TakeOverRules): readonly EnvelopeRecipient[] {
  if (message.sender === '') return []
  return aliases.map(({ address, orcpt }) => ({ address: addressOf(address, myorigin), notify: ['success'], orcpt, alias: 'expanded' }))
}

/** A recipient that is due at the start of its lifetime. */
export function scheduledRecipient(recipient: EnvelopeRecipient, message: Message, rules: TakeOverRules): NewRecipient {
  const { address, notify, orcpt } = recipient
  const { sender, createdAt } = message
  const destination = destinationOf(recipient, sender, rules)
  const expiresAt = createdAt + lifetimeOf(sender, rules.policies.forMail(destination, message).settings)
  return { address, notify, orcpt, destination, dueAt: createdAt, expiresAt, leased: false }
}

/** Due times and retry steps of the recipients of one message. */
class Schedule {
  readonly #candidate: Candidate
  readonly #message: Message
  readonly #clock: QueueTimes
  readonly #rules: TakeOverRules

  constructor(candidate: Candidate, message: Message, clock: QueueTimes, rules: TakeOverRules) {
    this.#candidate = candidate
    this.#message = message
    this.#clock = clock
    this.#rules = rules
  }

  recipient(recipient: EnvelopeRecipient, outcome: DeliveryStatus | undefined): NewRecipient {
    const { wall } = this.#clock
    const now = this.#clock.now()
    const due = scheduledRecipient(recipient, this.#message, this.#rules)
    const policy = this.#rules.policies.forMail(due.destination, this.#message)
    const expiresAt = this.#candidate.isForcedToExpire ? Math.min(due.expiresAt, now) : due.expiresAt
    // A copy of the spool may have changed the file's time, which is no due time then.
    const dueAt = Math.min(wall.queueTime(this.#candidate.nextAt), now + this.#rules.longestWait, expiresAt)
    const isTried = outcome !== undefined || this.#candidate.source.queue === 'deferred'
    const tried = isTried ? this.#tried(policy, outcome ?? null) : undefined
    return { ...due, dueAt, expiresAt, tried }
  }

  /** Postfix does not count attempts. The schedule continues at the step that mail of this age has after its last attempt. */
  #tried({ retry }: DestinationPolicy, last: DeliveryStatus | null): Tried {
    const { id, createdAt } = this.#message
    const lastAt = this.#clock.wall.queueTime(this.#candidate.deferLog?.writtenAt ?? 0)
    let previousWait: Duration | null = null
    let age = 0
    let steps = 1
    for (; steps < STEPS_UNTIL_CONSTANT; steps++) {
      const step = steps
      previousWait = nextWait(retry, { step, age, previousWait, draw: () => this.#rules.draw(`retry ${id} ${step}`) })
      age += previousWait
      if (createdAt + age > lastAt) break
    }
    return { steps, attempts: steps, last }
  }
}

/** Waits do not grow after this number of steps. */
const STEPS_UNTIL_CONSTANT = 1000

const destinationOf = (recipient: EnvelopeRecipient, sender: string, rules: TakeOverRules): DestinationName =>
  aliasDestination(recipient) ?? rules.destinationOf(recipient.address, sender)

function messageIdOf(content: Buffer): string | undefined {
  for (const { name, value } of fieldsOf(content)) if (name === 'message-id') return keptMessageId(value)
  return undefined
}
