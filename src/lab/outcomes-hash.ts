/** A hash of what became of each recipient, which does not depend on the order in which clients sent. */
import { createHash } from 'node:crypto'
import type { World } from '../testkit/world.ts'

/**
 * SHA-256 in hex over the recipients in the order of their octets, each with its messages in the order of acceptance: attempts and notices,
 * without queue ids, sizes and the hosts of clients.
 */
export function outcomesHash(world: Pick<World, 'addresses' | 'recipient'>): string {
  const hash = createHash('sha256')
  const inOctets = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
  for (const address of world.addresses.toSorted(inOctets)) {
    const { attempts, notices } = world.recipient(address)
    const byMessage = [...Map.groupBy(attempts, ({ queueId }) => queueId).values()]
    const outcomes = byMessage.map((those) => those.map(({ at, outcome, status, reply = null }) => ({ at, outcome, status, reply })))
    hash.update(`${JSON.stringify({ address, messages: outcomes, notices })}\n`)
  }
  return hash.digest('hex')
}
