/**
 * Plans mail anew that quotas hold, after limits have changed or counts were deleted: each message, in order, is charged to the first slice with room, and
 * gets its time. A crash between the two charges mail twice, so that a limit is kept.
 */
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { queueIdOf, type MessageId } from '../mail/message.ts'
import { holdingQuota } from '../mail/message-times.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { QuotaCharge } from '../store/records/quota-count.ts'
import { sleep, type Clock, type Duration, type QueueTime } from '../system/clock.ts'
import { requestOf, type CountedQuota, type Quotas } from './intake/quotas.ts'
import type { Amounts } from './intake/quota-window.ts'
import { originOf } from './intake/share-key.ts'
import { pages } from './list-pages.ts'
import type { SchedulerControl } from './operation-rounds.ts'
import { rescheduled, type NewTimes } from './rescheduling.ts'

/** Number of messages that are read or planned without a pause. */
const ROUND = 64
/** Pause between two rounds, in which other work is done. */
const PAUSE: Duration = 10

export interface QuotaPlanningDeps {
  readonly store: Pick<QueueStore, 'operate' | 'records'>
  readonly reader: QueueReader
  readonly clock: Clock
  readonly policies: () => DestinationPolicies
  readonly scheduler: Pick<SchedulerControl, 'workAdded'>
  readonly quotas: Quotas
  /** True for a key whose mail this node plans, when all do. */
  readonly owns: (key: string) => boolean
}

/** A message that a quota holds. */
interface HeldMail {
  readonly queueId: string
  readonly id: MessageId
  readonly notBefore: QueueTime
  readonly holdRequest: string
  readonly sender: string
  readonly need: Amounts
  /** The quotas that hold mail of its origin. */
  readonly quotas: readonly CountedQuota[]
}

interface PlannedMail {
  readonly mail: HeldMail
  readonly times: Pick<NewTimes, 'notBefore' | 'holdRequest'>
}

/** The times of the last mail that was planned, by quota and key: the order of mail stays. */
class LastTimes {
  readonly #times = new Map<string, QueueTime>()

  of(quotas: readonly CountedQuota[], now: QueueTime): QueueTime {
    return Math.max(now, ...quotas.map((one) => this.#times.get(idOf(one)) ?? now))
  }

  set(quotas: readonly CountedQuota[], at: QueueTime): void {
    for (const one of quotas) this.#times.set(idOf(one), at)
  }
}

const idOf = ({ quota, key }: CountedQuota): string => `${quota} ${key}`

/** Number of times that mail is looked for which came while other mail was planned. */
const MOST_PASSES = 5

/** Plans all held mail, or that of one key, and then what came meanwhile, so that later mail waits no longer than they do. */
export async function planHeldMail(deps: QuotaPlanningDeps, key: string | null, stopping: AbortSignal): Promise<void> {
  const planned = new Set<MessageId>()
  const last = new LastTimes()
  for (let pass = 0; pass < MOST_PASSES && !stopping.aborted; pass++) {
    const held = (await heldMail(deps, key, planned)).toSorted((a, b) => a.notBefore - b.notBefore || a.id - b.id)
    if (held.length === 0) return
    await plan(deps, held, { last, stopping })
    for (const { id } of held) planned.add(id)
  }
}

async function plan(
  deps: QuotaPlanningDeps,
  held: readonly HeldMail[],
  { last, stopping }: { readonly last: LastTimes; readonly stopping: AbortSignal },
): Promise<void> {
  const { quotas, store, clock } = deps
  for (const { quotas: counted } of held) await quotas.counts.load(counted)
  const charges: QuotaCharge[] = []
  const ends: ((mayBeStored: boolean) => void)[] = []
  const charge = (some: readonly QuotaCharge[]): void => {
    charges.push(...some)
    ends.push(quotas.counts.add(some))
  }
  let areStored = false
  try {
    for (const mail of held) charge(withdrawn(mail, quotas))
    const planned: PlannedMail[] = []
    for (const [n, mail] of held.entries()) {
      const { at, by } = quotas.planAgain(mail.quotas, mail.need, last.of(mail.quotas, clock.now()))
      last.set(mail.quotas, at)
      const holdRequest = by === null ? undefined : requestOf(by, mail.need, mail.sender)
      planned.push({ mail, times: { notBefore: at, holdRequest } })
      charge(quotas.chargesOf(mail.quotas, mail.need, at))
      if (n % ROUND === ROUND - 1) await sleep(clock, PAUSE)
      if (stopping.aborted) return
    }
    await store.records.quotaCounts.charge(charges)
    areStored = true
    await reschedule(deps, planned)
  } finally {
    for (const end of ends) end(areStored)
  }
}

/** The held mail, but for what is planned already. */
async function heldMail(
  { reader, quotas, owns }: QuotaPlanningDeps,
  key: string | null,
  planned: ReadonlySet<MessageId>,
): Promise<readonly HeldMail[]> {
  const held: HeldMail[] = []
  for await (const page of pages(reader, { filter: { ...ANY_MESSAGE, queue: 'scheduled' }, size: ROUND })) {
    const unplanned = page.filter(({ message: { id } }) => !planned.has(id))
    const found = await Promise.all(unplanned.map(({ message }) => reader.details(queueIdOf(message))))
    for (const story of found) {
      const message = story?.message
      const { holdRequest = '' } = message ?? {}
      const holding = holdingQuota(holdRequest)
      if (message?.notBefore === undefined || holding === undefined) continue
      const { sender, recipients } = holding
      const counted = quotas.of(originOf({ ...message, sender })).filter(({ table }) => table.action === 'hold')
      const isWanted = key === null ? owns(counted[0]?.key ?? sender) : counted.some((one) => one.key === key)
      if (!isWanted) continue
      const { id, notBefore } = message
      held.push({ queueId: queueIdOf(message), id, notBefore, holdRequest, sender, need: { messages: 1, recipients }, quotas: counted })
    }
  }
  return held
}

/** The charges that take back those of a message, as far as they are there. */
function withdrawn({ quotas: counted, need, notBefore }: HeldMail, quotas: Quotas): readonly QuotaCharge[] {
  return quotas.chargesOf(counted, need, notBefore).flatMap((one) => {
    const present = quotas.counts.of(one, one.span).get(one.begin)
    const messages = Math.min(one.messages, Math.max(0, present?.messages ?? 0))
    const recipients = Math.min(one.recipients, Math.max(0, present?.recipients ?? 0))
    return messages === 0 && recipients === 0 ? [] : [{ ...one, messages: -messages, recipients: -recipients }]
  })
}

async function reschedule(
  { store, reader, clock, policies, scheduler }: QuotaPlanningDeps,
  planned: readonly PlannedMail[],
): Promise<void> {
  const moved = planned.filter(({ mail, times }) => mail.notBefore !== times.notBefore || mail.holdRequest !== times.holdRequest)
  for (let from = 0; from < moved.length; from += ROUND) {
    const round = moved.slice(from, from + ROUND)
    const stories = await Promise.all(round.map(({ mail }) => reader.details(mail.queueId)))
    const operations = stories.flatMap((story, n) => {
      const times = round[n]?.times
      if (story === undefined || times === undefined) return []
      const operation = rescheduled(
        story,
        { ...times, expires: story.message.expires },
        { now: clock.now(), policies: policies(), anyWaiting: false },
      )
      return [{ message: story.message.id, operation }]
    })
    const results = (await store.operate(operations)) ?? []
    const scheduled = Math.min(...operations.map(({ operation }) => operation.notBefore ?? Infinity))
    scheduler.workAdded(
      results.flatMap(({ woken }) => woken),
      { revive: false, scheduled },
    )
  }
}
