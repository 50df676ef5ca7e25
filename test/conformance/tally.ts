/**
 * Compares the tally of a store with its listing after every call of every other test of the suite.
 */
import { expect } from 'vitest'
import { intercepted } from '../../src/store/methods.ts'
import type { QueueTally } from '../../src/store/counts/queue-tally.ts'
import { tallyOf, tallyOfListing } from '../support/tally.ts'
import type { SharedNode, Subject } from './mail.ts'

/** Recipients that must be in the queue or in the trash by the traffic. */
const queuedBy = ({ traffic: { accepted, delivered, bounced, expired, deleted } }: QueueTally): number =>
  accepted - delivered - bounced - expired - deleted

const countedIn = ({ queues, trash }: QueueTally): number => queues.reduce((sum, { recipients }) => sum + recipients, trash.recipients)

export function withTallyChecked(subject: Subject): Subject {
  const { store, moves, reader, crash } = subject
  let [begun, running] = [0, 0]
  /** Nothing is compared while another call runs: the two would be of different moments. */
  const check = async () => {
    const before = begun
    if (running > 0) return
    const [tally, expected] = [await tallyOf(store), await tallyOfListing(reader)]
    if (begun !== before) return
    expect(tally).toEqual(expected)
    expect(queuedBy(tally)).toBe(countedIn(tally))
  }
  const observed = <S extends object>(one: S, after: () => Promise<void>): S =>
    intercepted(one, async (method, _, perform) => {
      if (method === 'tally') return perform()
      begun++
      running++
      try {
        return await perform()
      } finally {
        running--
        await after()
      }
    })
  const { shared } = subject
  const join = async (): Promise<SharedNode> => {
    if (shared === undefined) throw new Error('this store has one owner at a time')
    const node = await shared.join()
    // The tally of a node that was taken over cannot be read, so the calls of other nodes are only counted.
    return { ...node, store: observed(node.store, async () => undefined) }
  }
  return {
    ...subject,
    store: observed(store, check),
    ...(moves === undefined ? {} : { moves: observed(moves, check) }),
    crash: crash === undefined ? undefined : async () => withTallyChecked(await crash()),
    ...(shared === undefined ? {} : { shared: { ...shared, join } }),
  }
}
