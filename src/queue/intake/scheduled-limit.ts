/**
 * Limit of the scheduled messages of a share (smtpd_future_release_message_limit, RFC 4865 §5). The counts of the store are read again when they
 * are a second old; messages on their way to the store, and those stored since, are added to them, so that clients do not pass the limit together.
 */
import type { Config } from '../../config/options.ts'
import type { ContentId } from '../../mail/message.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import type { QueueStore, ScheduledMail } from '../../store/queue-store.ts'
import { SECOND, type Clock, type Duration } from '../../system/clock.ts'
import { originOf, shareOf, type Origin } from './share-key.ts'

const TOO_MANY: SmtpReply = { code: 552, status: '5.7.16', text: 'Error: too many messages are held for later release', limit: 'held' }

/** Age of counts that are read again. */
const OLD: Duration = SECOND

interface ScheduledLimitDeps {
  readonly store: Pick<QueueStore, 'scheduledMail'>
  readonly clock: Pick<Clock, 'monotonic' | 'now'>
  readonly settings: () => Pick<Config, 'smtpd_future_release_message_limit' | 'share_key'>
}

/** A message that the counts may not have. */
interface Added {
  readonly share: string
  isStored: boolean
}

interface Counts {
  readonly at: Duration
  readonly key: Config['share_key']
  readonly of: ReadonlyMap<string, number>
}

export class ScheduledLimit {
  readonly #deps: ScheduledLimitDeps
  readonly #added = new Map<ContentId, Added>()
  #counts: Counts | null = null
  #reading: Promise<Counts> | null = null

  constructor(deps: ScheduledLimitDeps) {
    this.#deps = deps
  }

  /** The reply to a message that is to be held, at MAIL. Undefined when it may be; without a limit, at once. */
  refusal(origin: Origin): Promise<SmtpReply | undefined> | undefined {
    return this.#limit === 0 ? undefined : this.#refusal(origin)
  }

  /** Promises a place to a message whose content is complete, or returns the reply that refuses it. `ended` follows a promise. */
  admit(content: ContentId, origin: Origin): Promise<SmtpReply | undefined> | undefined {
    return this.#limit === 0 ? undefined : this.#admit(content, origin)
  }

  /** Ends a promise. A message that may be stored counts until the store is asked again. */
  ended(content: ContentId, mayBeStored: boolean): void {
    const added = this.#added.get(content)
    if (added === undefined) return
    if (mayBeStored) added.isStored = true
    else this.#added.delete(content)
  }

  get #limit(): number {
    return this.#deps.settings().smtpd_future_release_message_limit
  }

  async #refusal(origin: Origin): Promise<SmtpReply | undefined> {
    const counts = await this.#current()
    return this.#isFull(shareOf(counts.key, origin), counts) ? TOO_MANY : undefined
  }

  async #admit(content: ContentId, origin: Origin): Promise<SmtpReply | undefined> {
    const counts = await this.#current()
    const share = shareOf(counts.key, origin)
    if (this.#isFull(share, counts)) return TOO_MANY
    if (share !== undefined) this.#added.set(content, { share, isStored: false })
    return undefined
  }

  #isFull(share: string | undefined, counts: Counts): boolean {
    if (share === undefined) return false
    let used = counts.of.get(share) ?? 0
    for (const added of this.#added.values()) if (added.share === share) used++
    return used >= this.#limit
  }

  async #current(): Promise<Counts> {
    const { clock, settings } = this.#deps
    const counts = this.#counts
    if (counts !== null && clock.monotonic() - counts.at < OLD && counts.key === settings().share_key) return counts
    this.#reading ??= this.#read().finally(() => (this.#reading = null))
    return this.#reading
  }

  async #read(): Promise<Counts> {
    const { store, clock, settings } = this.#deps
    const [at, key] = [clock.monotonic(), settings().share_key]
    const stored = [...this.#added].flatMap(([content, { isStored }]) => (isStored ? [content] : []))
    const of = countsOf(await store.scheduledMail(clock.now()), key)
    for (const content of stored) this.#added.delete(content)
    return (this.#counts = { at, key, of })
  }
}

/** Numbers of messages by share. */
function countsOf(mail: readonly ScheduledMail[], key: Config['share_key']): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const one of mail) {
    const share = shareOf(key, originOf(one))
    if (share !== undefined) counts.set(share, (counts.get(share) ?? 0) + one.messages)
  }
  return counts
}
