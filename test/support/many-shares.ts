/** A backlog of thousands of shares at one destination, of weights 3, 1 and 1, in virtual time. */
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { SECOND, type Duration } from '../../src/system/clock.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { fillBacklog } from './backlog.ts'
import { QueueWorld } from './queue-world.ts'

/** In ms. */
const DELIVERY: Duration = 500
const WINDOW = 20
/** Recipients of a share, for each unit of its weight. */
const ROUNDS = 2

/** Weight of the n-th share. */
export const weightOf = (share: number): number => (share % 3 === 0 ? 3 : 1)

/** Starts of each share when as many recipients have begun as the weights are in sum. */
export async function startsOfShares(shares: number): Promise<readonly number[]> {
  const queue = await openInlineStore({ memory: true })
  const all = Array.from({ length: shares }, (_, share) => share)
  // The share of the n-th message: each has one in turn, while it has some.
  const mail = Array.from({ length: 3 * ROUNDS }, (_, round) => all.filter((share) => round < ROUNDS * weightOf(share))).flat()
  const nameOf = (share: number): string => `tenant${share}.example`
  const ids = await fillBacklog(queue.store, {
    messages: mail.length,
    now: BEGINNING,
    destinationOf: () => 'far.example',
    dueIn: () => 0,
    bytes: 100,
    shareOf: (n) => nameOf(mail[n] ?? 0),
  })
  const heavy = all.filter((share) => weightOf(share) > 1)
  const world = await QueueWorld.create({
    queue,
    config: {
      fair_share: 'yes',
      share_key: 'sender_domain',
      share_weight_maps: Object.fromEntries(heavy.map((share) => [nameOf(share), String(weightOf(share))])),
      default_destination_concurrency_limit: WINDOW,
      initial_destination_concurrency: WINDOW,
    },
    remote: () => ({ kind: 'accepts', takes: DELIVERY }),
  })
  const wanted = mail.length / ROUNDS
  while (world.attempts().length < wanted) await world.advance(10 * SECOND)
  const shareOf = new Map(ids.map((id, n) => [id, mail[n] ?? 0]))
  const starts = Array.from({ length: shares }, () => 0)
  for (const { message } of world.attempts().slice(0, wanted)) starts[shareOf.get(message) ?? 0]!++
  return starts
}
