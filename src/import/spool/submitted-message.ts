/**
 * Queues a file of Postfix's maildrop, which Postfix has not yet rewritten, like a submission of `sendmail`: with a Received field, missing
 * header fields, and rewritten addresses. The message keeps the time of its submission.
 */
import type { ContentRules } from '../../checks/checked-content.ts'
import type { Config } from '../../config/options.ts'
import type { Envelope } from '../../mail/envelope.ts'
import { fromField } from '../../mail/from-field.ts'
import { fieldsOf } from '../../mail/headers.ts'
import { queueIdOf } from '../../mail/message.ts'
import { Acceptor } from '../../queue/intake/acceptor.ts'
import type { Submitted } from '../../queue/intake/intake.ts'
import type { IntakePort } from '../../queue/intake/message-receiver.ts'
import type { Rewriting } from '../../rewriting/rewriting.ts'
import type { NewMessage } from '../../store/new-message.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import type { Clock } from '../../system/clock.ts'
import { Events } from '../../telemetry/events.ts'
import { addressOf, keyOf, type Candidate } from './taken-message.ts'
import { UnusableQueueFile } from './queue-records.ts'

export interface SubmissionRules {
  readonly config: Config
  readonly clock: Clock
  readonly rewriting: Rewriting | null
  readonly checks: ContentRules<'body'> | null
  /** Routes and schedules an accepted message. */
  readonly prepare: (entry: Submitted) => NewMessage
}

/** Resolves with the number of queued recipients when the message is on disk; 0 when a check has discarded it. Rejects with UnusableQueueFile or StoreUnavailable. */
export async function queueSubmission(candidate: Candidate, store: QueueStore, rules: SubmissionRules): Promise<number> {
  const { message, uid } = candidate
  const { config, clock, rewriting, checks } = rules
  const port = new SubmissionIntake(candidate, store, rules)
  const notes: string[] = []
  const events = new Events(() => clock.wall.now())
  events.listen((event) => event.kind === 'note' && notes.push(event.text))
  const envelope = envelopeOf(candidate, config.myorigin)
  const acceptor = new Acceptor({ intake: port, config, clock, events, rewriting, checks })
  const content = [...fromFieldOf(candidate, envelope.sender), message.content]
  const accepted = await acceptor.accept({ envelope, content, client: { uid, maildropFile: keyOf(candidate) } })
  if (port.failure !== null) throw port.failure
  if (accepted.kind === 'queued') return port.recipients
  const why = accepted.kind === 'refused' ? accepted.reply.text : 'the commit was not answered'
  throw new UnusableQueueFile(`it is refused: ${why}${notes.map((text) => `: ${text}`).join('')}`)
}

function envelopeOf({ message }: Candidate, origin: string): Envelope {
  const recipients = message.recipients.map(({ address, notify, orcpt }) => ({ address: addressOf(address, origin), notify, orcpt }))
  const { ret, envid, smtputf8 } = message
  return { sender: message.sender === '' ? '' : addressOf(message.sender, origin), recipients, ret, envid, smtputf8 }
}

/** A From field with the user's name; empty when the content has a From field, or when the name is unknown. */
function fromFieldOf({ message }: Candidate, sender: string): readonly Buffer[] {
  const { content, fullName } = message
  if (fullName === null || sender === '' || [...fieldsOf(content)].some(({ name }) => /^(?:resent-)?from$/.test(name))) return []
  return [Buffer.from(fromField(fullName, sender))]
}

/** Gives the message the time of its submission. Its recipients are due at once. */
class SubmissionIntake implements IntakePort {
  failure: unknown = null
  recipients = 0
  readonly #candidate: Candidate
  readonly #store: QueueStore
  readonly #rules: SubmissionRules

  constructor(candidate: Candidate, store: QueueStore, rules: SubmissionRules) {
    this.#candidate = candidate
    this.#store = store
    this.#rules = rules
  }

  begin(): ReturnType<IntakePort['begin']> {
    const { clock } = this.#rules
    const id = this.#store.nextId()
    const arrivedAt = Math.min(clock.wall.queueTime(this.#candidate.message.arrivedAt), clock.now())
    return { id, arrivedAt, queueId: queueIdOf({ id, createdAt: arrivedAt }) }
  }

  /** Mail of another queue is not refused. */
  admit(): ReturnType<IntakePort['admit']> {
    return { share: undefined }
  }

  admitHeld(): undefined {
    return undefined
  }

  charge(): undefined {
    return undefined
  }

  async chargeDiscarded(): Promise<undefined> {
    return undefined
  }

  settled(): void {}

  get stageFrom(): number {
    return 0
  }

  async stage(...[content, from, chunks]: Parameters<IntakePort['stage']>): Promise<undefined> {
    await this.#kept(() => this.#store.stage(content, from, chunks))
    return undefined
  }

  unstage(content: number): Promise<void> {
    return this.#store.unstage(content)
  }

  async take(entry: Submitted): Promise<void> {
    const prepared = await this.#kept(async () => {
      const ready = this.#rules.prepare(entry)
      await this.#store.enqueue(ready)
      return ready
    })
    this.recipients = prepared.recipients.length
  }

  /** Keeps the error of a step, because the acceptor reports only that the message is refused. */
  async #kept<T>(step: () => Promise<T>): Promise<T> {
    try {
      return await step()
    } catch (error) {
      this.failure = error
      throw error
    }
  }
}
