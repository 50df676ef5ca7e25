/**
 * MAILER-DAEMON alone with a store on a virtual clock; the test sets the outcomes of deliveries. The test can make the store fail,
 * or the process crash, at any commit of a notice.
 */
import { idleRecorder } from './idle-recorder.ts'
import { MailerDaemon } from '../../src/bounce/mailer-daemon.ts'
import type { NoticeEntry, NoticeSettings, PreparedMessage } from '../../src/bounce/notice-writer.ts'
import { parseNotice, type ParsedNotice } from '../../src/bounce/dsn-parser.ts'
import type { TokenBucketLimits } from '../../src/bounce/token-bucket.ts'
import { domainOf } from '../../src/mail/address.ts'
import { DAY, type Duration, type QueueTime } from '../../src/system/clock.ts'
import type { EnvelopeRecipient } from '../../src/mail/envelope.ts'
import { inChunks } from '../../src/store/chunks.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { intercepted } from '../../src/store/methods.ts'
import { queueIdOf, recipientId, type NoticeDue, type Message, type MessageId } from '../../src/mail/message.ts'
import type { NewMessage } from '../../src/store/new-message.ts'
import { StoreUnavailable, type QueueStore } from '../../src/store/queue-store.ts'
import type { Report, Settled } from '../../src/store/recorded-outcomes.ts'
import { StoreHealth } from '../../src/store/store-health.ts'
import { Events, type QueueEvent } from '../../src/telemetry/events.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { ORIGINAL, said, settingsOf } from './notices.ts'

/** Result of a commit of notices: it succeeds, it fails, or the process crashes before or after it. */
export type Fate = 'commits' | 'fails' | 'dies-before' | 'dies-after'

export interface MailerDaemonOptions {
  readonly config?: readonly string[]
  readonly pace?: TokenBucketLimits
}

export class MailerDaemonHarness implements NoticeEntry {
  readonly clock = new VirtualClock()
  readonly events = new Events(() => this.clock.now())
  readonly history: QueueEvent[] = []
  readonly driver = new TimeDriver(this.clock, {})
  readonly settings: NoticeSettings
  readonly store: QueueStore
  /** Messages with a recipient in delivery. */
  readonly inDelivery = new Set<MessageId>()
  readonly closed = new Set<string>()
  /** Notices that entered the queue. */
  readonly sent: NewMessage[] = []
  withdrawals = 0
  crashes = 0
  /** Number of running commits of notices, and its maximum. */
  underWay = 0
  mostUnderWay = 0
  /** True when the store cannot commit. */
  fails = false
  /** Decides the result of each commit; when absent, every commit succeeds. */
  fate: (report: Report) => Fate | Promise<Fate> = () => 'commits'
  daemon: MailerDaemon
  /** The running process. Calls of a crashed process are never answered. */
  #life = 0
  readonly #pace: TokenBucketLimits | undefined

  constructor({ config = [], pace }: MailerDaemonOptions = {}) {
    this.settings = settingsOf(config)
    this.#pace = pace
    this.store = openMemoryStore().store
    this.events.listen((event) => this.history.push(event))
    this.daemon = this.#boot()
  }

  #storeHealth: StoreHealth | null = null

  /** Stops MAILER-DAEMON as the relay does: first, calls to the store are no longer repeated. */
  async stop(): Promise<void> {
    this.#storeHealth?.abandon()
    await this.daemon.stop()
  }

  #boot(): MailerDaemon {
    const { clock, settings } = this
    const life = ++this.#life
    const store = this.#unreliable(life)
    const storeHealth = new StoreHealth({
      store: store.upkeep,
      clock,
      failed: (why) => this.events.emit({ kind: 'store-unavailable', why }),
    })
    this.#storeHealth = storeHealth
    return new MailerDaemon({
      recorder: idleRecorder,
      clock,
      events: this.events,
      store,
      storeHealth,
      settings: () => settings,
      roundIsOpen: (message) => this.inDelivery.has(message),
      closed: (destination) => this.closed.has(destination),
      pace: this.#pace,
    })
  }

  /** Crashes the process and starts it again on the same store. */
  restart(): void {
    this.daemon = this.#boot()
    this.daemon.start(this)
  }

  /** The store of one process. */
  #unreliable(life: number): QueueStore {
    const dead = new Promise<never>(() => undefined)
    const report = async (given: Report) => {
      if (life !== this.#life) return dead
      const fate = this.fails ? 'fails' : await this.fate(given)
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
    return intercepted(this.store, (method, args, perform) => {
      if (method === 'report') return report(args[0] as Report)
      return method === 'ping' && this.fails ? Promise.reject(new StoreUnavailable('disk full')) : perform()
    })
  }

  // --- intake of notices

  begin() {
    const id = this.store.nextId()
    const arrivedAt = this.clock.now()
    return { id, arrivedAt, queueId: queueIdOf({ id, createdAt: arrivedAt }) }
  }

  async signed(message: Message): Promise<Message> {
    return message
  }

  prepare({ message, recipients, content }: Parameters<NoticeEntry['prepare']>[0]): PreparedMessage {
    const entry = {
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
    return { entry, committed: () => undefined, withdrawn: () => void this.withdrawals++ }
  }

  // --- outcomes of deliveries

  /** Adds a message in delivery to these recipients. */
  async message(to: readonly (string | EnvelopeRecipient)[], facts: Partial<Message> = {}): Promise<Message> {
    const { id, arrivedAt } = this.begin()
    const content = Buffer.from(ORIGINAL)
    const base = { id, createdAt: arrivedAt, arrivedAt, contentId: id, sender: 'app@us.example', size: content.length, smtputf8: false }
    const message: Message = { ...base, ...facts }
    const recipients = to.map((one) => {
      const recipient = typeof one === 'string' ? { address: one } : one
      return { ...recipient, destination: domainOf(recipient.address), dueAt: arrivedAt, expiresAt: arrivedAt + 2 * DAY, leased: true }
    })
    await this.store.enqueue({ message, recipients, content: inChunks(content) })
    this.events.emit({ kind: 'accepted', message, recipients: recipients.map(({ address }) => address), client: null })
    return message
  }

  /** Bounces the n-th recipient; a notice is due for it. */
  async fail(message: Message, position = 0, noticeDue: NoticeDue | undefined = 'failure'): Promise<void> {
    await this.#settle(message, {
      recipient: recipientId(message.id, position),
      state: 'bounced',
      at: this.clock.now(),
      attempts: 1,
      last: said('550 5.1.1 no such user'),
      noticeDue,
    })
  }

  /** Defers the n-th recipient. */
  async defer(
    message: Message,
    position: number,
    dueAt: QueueTime,
    more: { readonly noticeDue?: NoticeDue; readonly warnAt?: QueueTime | null } = {},
  ): Promise<void> {
    const recipient = recipientId(message.id, position)
    const last = said('450 4.2.1 busy')
    await this.#settle(message, { recipient, state: 'waiting', dueAt, steps: 1, attempts: 1, last, noticeDue: more.noticeDue }, more.warnAt)
  }

  async #settle(message: Message, settled: Settled, warnAt?: QueueTime | null): Promise<void> {
    const { noticeDue } = await this.store.settle({
      owner: this.store.leaseTerms().owner,
      message: message.id,
      recipients: [settled],
      attempts: [],
      warnAt,
    })
    if (noticeDue) this.daemon.noticeDue(message.id)
  }

  advance(by: Duration): Promise<void> {
    return this.driver.runUntil(this.clock.now() + by)
  }

  rest(): Promise<void> {
    return this.driver.rest()
  }

  /** The notices that entered the queue, parsed. */
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
