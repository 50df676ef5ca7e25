/**
 * Wraps the store and the delivery agent of a relay: records commits and attempts, delays commits or lets them fail, and kills the
 * relay at the commits that a scenario names. Commits run one by one, so that the commits before a crash are known exactly.
 */
import type { AttemptResult, Delivery, DeliveryAgent } from '../../src/delivery/delivery-agent.ts'
import { sleep, type Duration } from '../../src/system/clock.ts'
import { parseNotice } from '../../src/bounce/dsn-parser.ts'
import type { DeliveryRequest } from '../../src/mail/message.ts'
import { recordCall } from '../../src/store/records/records.ts'
import { intercepted, type Arguments, type QueueMethod } from '../../src/store/methods.ts'
import type { NewMessage } from '../../src/store/new-message.ts'
import { StoreUnavailable, type QueueStore } from '../../src/store/queue-store.ts'
import type { Interceptors } from '../../src/testkit/options/world-options.ts'
import type { World } from '../../src/testkit/index.ts'
import type { CommitCrash, Scenario } from './scenario.ts'
import type { CommittedClaim, Commit, CommitOf, NoticeEntry } from './record.ts'

/** Methods that are neither counted nor recorded: reads, and the record of the clock, whose age must have no effect. */
const READS: ReadonlySet<string> = new Set([
  'readChunk',
  'freeSpace',
  'messagesWithNoticesDue',
  'noticesDueOf',
  'claimWarnings',
  'scheduledMail',
  'waitingAt',
  'destinationsDue',
  'nextDeadlines',
  'destinations',
  'saveClock',
  // The begin of a scenario with a receiver, and calls of the sender of events that only read.
  'subscribe',
  'wantedTypes',
  'subscriptions',
  'pullEvents',
  'parkedDue',
  'numberEvents',
  // Only after a full disk, so that the commits of a scenario keep their numbers.
  'recordEvents',
])

export const isRead = (method: QueueMethod, args: readonly unknown[]): boolean =>
  READS.has(method) || (method === 'record' && recordCall(args as Arguments['record']).kind === 'read')

interface AskedCall {
  readonly method: QueueMethod
  readonly args: readonly unknown[]
  /** Time of the call. */
  readonly asked: number
}

/** Records the attempts of the delivery agents of a scenario, with numbers. */
export class AttemptRecorder {
  readonly #note: (did: string, details: Readonly<Record<string, unknown>>) => void
  #attempts = 0

  constructor(note: (did: string, details: Readonly<Record<string, unknown>>) => void) {
    this.#note = note
  }

  /** Wraps an agent. `of` are members of each record; the end of an attempt is recorded while `isAlive`. */
  recorded(agent: DeliveryAgent, isAlive: () => boolean, of: Readonly<Record<string, unknown>> = {}): DeliveryAgent {
    return {
      close: () => agent.close(),
      deliver: async (request, options) => {
        const attempt = ++this.#attempts
        this.#note('began', { attempt, ...of, ...requestFacts(request) })
        const result = await agent.deliver(request, {
          ...options,
          admits: (provider) => {
            const isAdmitted = options.admits?.(provider) !== false
            if (isAdmitted && provider !== null) this.#note('admitted', { attempt, provider })
            return isAdmitted
          },
        })
        if (isAlive()) this.#note(...endOf(result, { attempt, ...of, destination: request.destination }))
        return result
      },
    }
  }
}

export class Recorder {
  world: World | undefined
  /** The store cannot commit before this time on the monotonic clock. */
  fullUntil: Duration = 0
  /** True to end the crashes. */
  calm = false
  #commits = 0
  readonly #attempts = new AttemptRecorder((did, details) => this.note(did, details))
  readonly #scenario: Pick<Scenario, 'commitTakes' | 'crashes'>

  constructor(scenario: Pick<Scenario, 'commitTakes' | 'crashes'>) {
    this.#scenario = scenario
  }

  /** Number of commits so far. */
  get commits(): number {
    return this.#commits
  }

  note(did: string, details: Readonly<Record<string, unknown>> = {}): void {
    const { world } = this
    world?.history().record({ at: world.clock.monotonic(), where: 'test', event: { did, ...details } })
  }

  readonly between: Interceptors = {
    store: (store, life) => {
      let last: Promise<unknown> = Promise.resolve()
      const inTurn = <T>(task: () => Promise<T>): Promise<T> => {
        const result = last.then(task)
        last = result.catch(() => undefined)
        return result
      }
      return intercepted(store, async (method, args, perform) => {
        if (method === 'readChunk' || method === 'nextIds') return perform()
        const asked = life.clock.now()
        if (this.#scenario.commitTakes > 0 && this.world !== undefined) await sleep(life.clock, this.#scenario.commitTakes)
        return inTurn(() => (life.alive ? this.#call({ method, args, asked }, perform) : never()))
      })
    },
    agent: (agent, life) => this.#attempts.recorded(agent, () => life.alive),
  }

  async #call({ method, args, asked }: AskedCall, perform: () => Promise<unknown>): Promise<unknown> {
    if (isRead(method, args)) return perform()
    if ((this.world?.clock.monotonic() ?? Infinity) < this.fullUntil) throw new StoreUnavailable(`the disk is full: no ${method}`)
    if (method === 'ping') return perform()
    const number = ++this.#commits
    const crash = this.calm || this.world === undefined ? undefined : this.#scenario.crashes.find(({ commit }) => commit === number)
    if (crash?.side === 'before') return this.#killed(crash)
    const answer = await perform()
    this.note('committed', { number, asked, ...digest(method, args, answer) })
    return crash === undefined ? answer : this.#killed(crash)
  }

  #killed({ downFor }: CommitCrash): Promise<never> {
    this.world?.kill(downFor / 1000)
    return never()
  }
}

/** A new promise for each call, so that its waiters can be garbage-collected. */
const never = (): Promise<never> => new Promise(() => undefined)

const requestFacts = ({ message, destination, recipients, forcedExpire }: DeliveryRequest): CommittedClaim => ({
  message: message.id,
  destination,
  forcedExpire,
  recipients: recipients.map(({ id, flushed }) => ({ id, flushed })),
})

const resultFacts = ({ outcomes, feedback, congestion, possiblySent, times }: AttemptResult) => ({
  outcomes: [...outcomes].map(([recipient, { outcome, status, softBounce }]) => ({
    recipient,
    outcome,
    reply: status.reply,
    stage: status.stage,
    status: status.status,
    softBounce,
  })),
  feedback,
  congestion,
  possiblySent,
  endedAt: times.endedAt,
})

/** Record of the end of a delivery: name and members. */
const endOf = (result: Delivery, of: Readonly<Record<string, unknown>>): [string, Readonly<Record<string, unknown>>] =>
  typeof result === 'string' ? ['not begun', of] : ['ended', { ...of, result: resultFacts(result) }]

/** Record of a commit. A content is replaced by the notice that it contains. */
export function digest(method: QueueMethod, args: readonly unknown[], answer: unknown): Commit | { readonly method: string } {
  switch (method) {
    case 'enqueue': {
      const [entry] = args as Arguments['enqueue']
      return { method, ...entryFacts(entry) }
    }
    case 'claimDue':
      return { method, requests: (answer as Awaited<ReturnType<QueueStore['claimDue']>>).requests.map(requestFacts) }
    case 'claimExpired':
      return { method, requests: (answer as readonly DeliveryRequest[]).map(requestFacts) }
    case 'claimSuspect':
      return { method, requests: answer === undefined ? [] : [requestFacts(answer as DeliveryRequest)] }
    case 'giveBack':
      return { method, recipients: (args as Arguments['giveBack'])[0] }
    case 'settle':
      return { method, settlement: withoutEvents((args as Arguments['settle'])[0]), removed: (answer as CommitOf<'settle'>).removed }
    case 'quarantine':
      return { method, message: (args as Arguments['quarantine'])[0] }
    case 'markDelayNoticeDue':
      return { method, message: (args as Arguments['markDelayNoticeDue'])[0], recipients: (args as Arguments['markDelayNoticeDue'])[1] }
    case 'report': {
      const [{ notices, ...report }] = [withoutEvents((args as Arguments['report'])[0])]
      const { entered } = answer as Awaited<ReturnType<QueueStore['report']>>
      return { method, ...report, notices: notices.map(noticeFacts), entered }
    }
    case 'operate': {
      const results = answer as Awaited<ReturnType<QueueStore['operate']>>
      return {
        method,
        operations: (args as Arguments['operate'])[0].filter((_, n) => results?.[n]?.changed === true).map(withoutEvents),
      }
    }
    case 'saveDestination':
      return { method, record: (args as Arguments['saveDestination'])[0] }
    case 'joinProvider':
      return { method, destination: (args as Arguments['joinProvider'])[0], provider: (args as Arguments['joinProvider'])[1] }
    default:
      return { method }
  }
}

/** The events that a call keeps are compared at the end. */
function withoutEvents<T extends { readonly events?: unknown }>(call: T): Omit<T, 'events'> {
  const { events: _, ...rest } = call
  return rest
}

const entryFacts = ({ message, recipients, hold }: NewMessage) => ({ message, recipients, hold: hold === true })

function noticeFacts(entry: NewMessage): NoticeEntry {
  const parsed = parseNotice(Buffer.concat(entry.content))
  return {
    ...entryFacts(entry),
    says:
      parsed === null
        ? null
        : parsed.recipients.map(({ recipient, action, status, diagnostic }) => ({ recipient, action, status, diagnostic })),
  }
}
