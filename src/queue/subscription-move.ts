/** The subscriptions of commands in a move of the queue. Those of the configuration are in the configuration of the other daemon. */
import type { LostEvents } from '../events/kept-event.ts'
import { MOVED_ON, type MovedSubscription } from '../store/outbox/moved-subscription.ts'
import { EVENTS_SEARCHED, resumed, type Subscription, type SubscriptionView } from '../store/outbox/subscription.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { QueueStore } from '../store/queue-store.ts'
import { SECOND, sleep, type Clock, type Duration } from '../system/clock.ts'

interface SubscriptionSource {
  readonly store: Pick<QueueStore, 'outbox'>
  readonly reader: Pick<QueueReader, 'allSubscriptions' | 'eventsAfter' | 'parkedEvents'>
  readonly clock: Clock
}

/** Time without progress after which events that wait are left behind. */
const PATIENCE: Duration = 5 * SECOND
const PAUSE: Duration = SECOND / 5

const ofCommands = async ({ reader }: SubscriptionSource): Promise<readonly SubscriptionView[]> =>
  (await reader.allSubscriptions()).filter(({ owner }) => owner === 'command')

/** The subscriptions as another queue takes them while this one goes on to send its own events. */
export async function subscriptionsOf(source: SubscriptionSource, offset: Duration): Promise<readonly MovedSubscription[]> {
  return (await ofCommands(source)).map((one) => ({ ...movedBy(one, offset), lost: null }))
}

/**
 * Disables the subscriptions, after a wait for the events that their targets take now. Returns them with what they will not have had:
 * an event whose request is running is counted, too.
 */
export async function handedOver(source: SubscriptionSource, offset: Duration): Promise<readonly MovedSubscription[]> {
  await untilSent(source)
  const moved: MovedSubscription[] = []
  for (const { name } of await ofCommands(source)) {
    const one = await disabled(source, name)
    if (one !== null) moved.push({ ...movedBy(one, offset), lost: await leftBehind(source, one) })
  }
  return moved
}

/** Enables what `handedOver` has disabled, after a move that failed. */
export async function takeBackSubscriptions(source: SubscriptionSource): Promise<void> {
  for (const { name, progress } of await ofCommands(source))
    if (progress.why === MOVED_ON) await source.store.outbox.replayEvents(name, { kind: 'waiting' })
}

async function untilSent(source: SubscriptionSource): Promise<void> {
  const { clock } = source
  let known = ''
  for (let since = clock.monotonic(); clock.monotonic() - since < PATIENCE; await sleep(clock, PAUSE)) {
    const waiting = (await ofCommands(source)).filter(
      ({ behind, progress }) => behind > 0 && progress.state === 'active' && progress.tries === 0,
    )
    if (waiting.length === 0) return
    const now = waiting.map(({ name, progress }) => `${name} ${progress.cursor}`).join()
    if (now !== known) since = clock.monotonic()
    known = now
  }
}

/** The subscription, disabled; null when it was removed meanwhile. */
async function disabled(source: SubscriptionSource, name: string): Promise<Subscription | null> {
  for (;;) {
    const found = (await ofCommands(source)).find((one) => one.name === name)
    if (found === undefined || found.progress.state === 'disabled') return found ?? null
    const progress = { ...resumed(found.progress), state: 'disabled', why: MOVED_ON } as const
    // False when events were sent meanwhile.
    if (await source.store.outbox.saveProgress(name, progress.cursor, { progress, told: null, parked: [] })) return { ...found, progress }
  }
}

const movedBy = ({ name, settings, createdAt, createdBy, progress }: Subscription, offset: Duration): Omit<MovedSubscription, 'lost'> => {
  const isDisabled = progress.state === 'disabled' && progress.why !== MOVED_ON
  return {
    name,
    createdBy,
    createdAt: createdAt + offset,
    settings: { ...settings, secrets: settings.secrets.map((one) => ({ ...one, until: one.until === null ? null : one.until + offset })) },
    state: isDisabled ? 'disabled' : 'active',
    why: isDisabled ? progress.why : null,
  }
}

/** The events that a subscription has not had: those after its position that it selects, parked ones, and those deleted before. */
async function leftBehind({ reader }: SubscriptionSource, { name, settings, progress }: Subscription): Promise<LostEvents | null> {
  const known = (await reader.allSubscriptions()).find((one) => one.name === name)?.lost ?? []
  const found: LostEvents[] = [...known]
  const one = (seq: number): LostEvents => ({ from: seq, to: seq, count: 1 })
  for (let after = 0; ;) {
    const page = await reader.parkedEvents(name, { after, limit: EVENTS_SEARCHED })
    found.push(...page.map(({ event }) => one(event.seq)))
    if (page.length < EVENTS_SEARCHED) break
    after = page.at(-1)?.event.seq ?? after
  }
  for (let after = progress.cursor; ;) {
    const { events, through, last } = await reader.eventsAfter({ after, limit: EVENTS_SEARCHED, filter: settings })
    found.push(...events.map(({ seq }) => one(seq)))
    if (through >= last || through === after) break
    after = through
  }
  if (found.length === 0) return null
  const count = found.reduce((sum, part) => sum + part.count, 0)
  return { from: Math.min(...found.map(({ from }) => from)), to: Math.max(...found.map(({ to }) => to)), count }
}
