/**
 * MAILER-DAEMON alone with a store on a virtual clock: what was delivered or not is told by the test. The store can be
 * made to fail, and the process to die, at any commit of a notice.
 */
import { MailerDaemon } from '../../src/bounce/mailer-daemon.ts'
import type { NoticeEntry, NoticeSettings } from '../../src/bounce/notice-writer.ts'
import { parseNotice, type ParsedNotice } from '../../src/bounce/notice-parser.ts'
import type { PaceLimits } from '../../src/bounce/pace.ts'
import { domainOf } from '../../src/mail/address.ts'
import { DAY, type Duration, type Instant } from '../../src/mail/clock.ts'
import type { EnvelopeRecipient } from '../../src/mail/envelope.ts'
import { openMemoryStore } from '../../src/queue/memory/memory-store.ts'
import { queueIdOf, recipientId, type Debt, type Message, type MessageId } from '../../src/queue/message.ts'
import { StoreUnavailable, type NewMessage, type QueueStore, type Report, type Settled } from '../../src/queue/store.ts'
import { Events, type QueueEvent } from '../../src/telemetry/events.ts'
import { Driver } from '../../src/testkit/idle.ts'
import { VirtualClock } from '../../src/testkit/virtual-clock.ts'
import { ORIGINAL, said, settingsOf } from './notices.ts'

/** What happens to a commit of notices: it succeeds, it fails, or the process dies before or after it. */
export type Fate = 'commits' | 'fails' | 'dies-before' | 'dies-after'

export interface NoticeWorldOptions {
  readonly config?: readonly string[]
  readonly pace?: PaceLimits
}

export class NoticeWorld implements NoticeEntry {
  readonly clock = new VirtualClock()
  readonly events = new Events(() => this.clock.now())
  readonly history: QueueEvent[] = []
  readonly driver = new Driver(this.clock, {})
  readonly settings: NoticeSettings
  readonly store: QueueStore
  /** Messages with a recipient in delivery. */
  readonly inDelivery = new Set<MessageId>()
  readonly closed = new Set<string>()
  /** Notices that entered the queue. */
  readonly sent: NewMessage[] = []
  withdrawals = 0
  crashes = 0
  /** Commits of notices under way, and the most there were. */
  underWay = 0
  mostUnderWay = 0
  /** Decides about each commit; every commit succeeds when absent. */
  fate: (report: Report) => Fate | Promise<Fate> = () => 'commits'
  daemon: MailerDaemon
  /** The process that is running; calls of one that died are never answered. */
  #life = 0
  readonly #pace: PaceLimits | undefined

  constructor({ config = [], pace }: NoticeWorldOptions = {}) {
    this.settings = settingsOf(config)
    this.#pace = pace
    this.store = openMemoryStore().store
    this.events.listen((event) => this.history.push(event))
    this.daemon = this.#boot()
  }

  #boot(): MailerDaemon {
    const { clock, settings } = this
    const life = ++this.#life
    return new MailerDaemon({
      clock,
      events: this.events,
      store: this.#unreliable(life),
      entry: this,
      settings: () => settings,
      rounds: (message) => (this.inDelivery.has(message) ? 'open' : 'over'),
      closed: (destination) => this.closed.has(destination),
      pace: this.#pace,
    })
  }

  /** The process dies and is started again on the same store. */
  restart(): void {
    this.daemon = this.#boot()
    this.daemon.start()
  }

  /** The store as one process sees it. */
  #unreliable(life: number): QueueStore {
    const dead = new Promise<never>(() => undefined)
    const report = async (given: Report) => {
      if (life !== this.#life) return dead
      const fate = await this.fate(given)
      if (fate === 'fails') throw new StoreUnavailable('disk full')
      this.mostUnderWay = Math.max(this.mostUnderWay, ++this.underWay)
      const result = fate === 'dies-before' ? undefined : await this.store.report(given)
      this.underWay--
      if (result?.entered === true) this.sent.push(...given.notices)
      if (fate === 'commits' && result !== undefined) return result
      this.crashes++
      this.restart()
      return dead
    }
    return new Proxy(this.store, {
      get: (store, name) => {
        if (name === 'report') return report
        const member: unknown = Reflect.get(store, name)
        return typeof member === 'function' ? member.bind(store) : member
      },
    })
  }

  // --- the way in for notices

  begin() {
    const id = this.store.nextId()
    const arrivedAt = this.clock.now()
    return { id, arrivedAt, queueId: queueIdOf({ id, createdAt: arrivedAt }) }
  }

  prepare({ message, recipients, content }: Parameters<NoticeEntry['prepare']>[0]): NewMessage {
    return {
      message,
      content,
      recipients: recipients.map(({ address }) => ({
        address,
        destination: domainOf(address),
        dueAt: message.createdAt,
        expiresAt: message.createdAt + DAY,
        leased: false,
      })),
    }
  }

  entered(): void {}

  withdrawn(): void {
    this.withdrawals++
  }

  // --- what the test tells

  /** A message in delivery to these recipients. */
  async message(to: readonly (string | EnvelopeRecipient)[], facts: Partial<Message> = {}): Promise<Message> {
    const { id, arrivedAt } = this.begin()
    const content = Buffer.from(ORIGINAL)
    const base = { id, createdAt: arrivedAt, arrivedAt, body: id, sender: 'app@us.example', size: content.length, smtputf8: false }
    const message: Message = { ...base, ...facts }
    const recipients = to.map((one) => {
      const recipient = typeof one === 'string' ? { address: one } : one
      return { ...recipient, destination: domainOf(recipient.address), dueAt: arrivedAt, expiresAt: arrivedAt + 2 * DAY, leased: true }
    })
    await this.store.enqueue({ message, recipients, content: [content] })
    this.events.emit({ kind: 'accepted', message, recipients: recipients.map(({ address }) => address), client: null })
    return message
  }

  /** The n-th recipient is given up, with a debt. */
  async fail(message: Message, position = 0, debt: Debt | undefined = 'failure'): Promise<void> {
    await this.#settle(message, {
      recipient: recipientId(message.id, position),
      state: 'bounced',
      at: this.clock.now(),
      attempts: 1,
      last: said('550 5.1.1 no such user'),
      debt,
    })
  }

  /** An attempt for the n-th recipient fails for now. */
  async defer(
    message: Message,
    position: number,
    dueAt: Instant,
    more: { readonly debt?: Debt; readonly warnAt?: Instant | null } = {},
  ): Promise<void> {
    const recipient = recipientId(message.id, position)
    const last = said('450 4.2.1 busy')
    await this.#settle(message, { recipient, state: 'waiting', dueAt, steps: 1, attempts: 1, last, debt: more.debt }, more.warnAt)
  }

  async #settle(message: Message, settled: Settled, warnAt?: Instant | null): Promise<void> {
    const { indebted } = await this.store.settle({ message: message.id, recipients: [settled], attempts: [], warnAt })
    if (indebted) this.daemon.notice(message.id)
  }

  advance(by: Duration): Promise<void> {
    return this.driver.runUntil(this.clock.now() + by)
  }

  rest(): Promise<void> {
    return this.driver.rest()
  }

  /** The notices that entered the queue, read. */
  get notices(): readonly ParsedNotice[] {
    return this.sent.map(({ content }) => {
      const notice = parseNotice(Buffer.concat(content))
      if (notice === null) throw new Error('what was sent is no notice')
      return notice
    })
  }

  /** Action and recipients of each notice. */
  get told(): readonly string[] {
    return this.notices.map(({ action, recipients }) => `${action}: ${recipients.map(({ recipient }) => recipient).join(' ')}`)
  }
}
