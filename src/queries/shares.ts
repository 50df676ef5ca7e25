/** Queries for the shares of the queue: what waits, and what they had of the deliveries. */
import type { MailClasses, TurnPolicies } from '../config/values/mail-classes.ts'
import type { MessageId } from '../mail/message.ts'
import { NO_SHARE } from '../queue/scheduler/turns/flow.ts'
import type { ShareUseJson, SharesJson } from '../resources/share-json.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { LiveQueue } from './queue-view.ts'

/** Maximum number of shares in an answer. */
export const MOST_SHARES = 50_000

export interface ShareQuery {
  /** Name of a class; all when absent. */
  readonly class?: string | undefined
  readonly limit: number
}

interface SharesView {
  readonly reader: Pick<QueueReader, 'shareLoads'>
  readonly policies: () => TurnPolicies
  readonly live: Pick<LiveQueue, 'shares'>
}

/** Messages per slice of the queue: some milliseconds. */
const SLICE = 8_000

interface Use {
  readonly class: string | null
  readonly key: string
  readonly weight: number
  /** Recipients in the queue, also those in delivery. */
  queued: number
  inFlight: number
  started: number
}

/** Reads the whole queue, a slice at a time. */
export async function sharesOf(view: SharesView, { class: wanted, limit }: ShareQuery): Promise<SharesJson> {
  const { shares } = view.policies()
  if (shares === null) return { fair_share: false, total: 0, shares: [] }
  const all = (await usesOf(view)).filter((one) => wanted === undefined || one.class === wanted)
  const uses = [...Map.groupBy(all, (one) => one.class).values()].flatMap((ofClass) => partsOf(ofClass))
  return { fair_share: true, total: uses.length, shares: uses.toSorted(byClassAndLoad(view.policies().classes)).slice(0, limit) }
}

async function usesOf({ reader, policies, live }: SharesView): Promise<readonly Use[]> {
  const { classes, shares } = policies()
  const uses = new Map<string, Use>()
  const of = (name: string | null, key: string): Use => {
    const id = `${name ?? ''} ${key}`
    let use = uses.get(id)
    if (use === undefined)
      uses.set(id, (use = { class: name, key, weight: shares?.weightOf(key) ?? 1, queued: 0, inFlight: 0, started: 0 }))
    return use
  }
  for (let after: MessageId | null = 0; after !== null;) {
    const slice: Awaited<ReturnType<QueueReader['shareLoads']>> = await reader.shareLoads({ after, size: SLICE })
    for (const { class: name, share, recipients } of slice.loads) of(shownClass(classes, name), share ?? NO_SHARE).queued += recipients
    after = slice.last
  }
  for (const { class: name, share, inFlight, started } of await live.shares()) {
    const use = of(shownClass(classes, name), share)
    use.inFlight += inFlight
    use.started += started
  }
  return [...uses.values()]
}

/** The name of the class as which mail is delivered; null without classes. */
const shownClass = (classes: MailClasses, name: string | null): string | null =>
  classes.names.length === 0 ? null : classes.named(name ?? undefined).name

function partsOf(ofClass: readonly Use[]): readonly ShareUseJson[] {
  const hasMail = ({ queued, inFlight }: Use): boolean => queued + inFlight > 0
  const weights = ofClass.reduce((sum, one) => sum + (hasMail(one) ? one.weight : 0), 0)
  const started = ofClass.reduce((sum, one) => sum + one.started, 0)
  return ofClass.map((one) => ({
    class: one.class,
    key: one.key,
    weight: one.weight,
    // Both counts are of different moments.
    waiting: Math.max(0, one.queued - one.inFlight),
    in_flight: one.inFlight,
    started: one.started,
    wanted: hasMail(one) ? rounded(one.weight / weights) : null,
    got: started === 0 ? null : rounded(one.started / started),
  }))
}

const rounded = (part: number): number => Math.round(part * 10_000) / 10_000

const byClassAndLoad =
  (classes: MailClasses) =>
  (a: ShareUseJson, b: ShareUseJson): number =>
    classes.names.indexOf(a.class ?? '') - classes.names.indexOf(b.class ?? '') ||
    b.waiting + b.in_flight - (a.waiting + a.in_flight) ||
    b.started - a.started ||
    (a.key < b.key ? -1 : Number(a.key > b.key))
