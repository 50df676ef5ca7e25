/** Measures the cost of claims from a queue of a given size, half of which is due at one destination that no claim names. */
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { fillBacklog } from './backlog.ts'

const NOW = Date.UTC(2026, 0, 1)
const HEALTHY = 100
const ROUNDS = 400

/** CPU time in microseconds of a claim of ten recipients and their return, over many destinations. */
export async function claimCost(messages: number): Promise<number> {
  const { store } = await openInlineStore({ memory: true })
  const healthy = (n: number): string => `d${String(n % HEALTHY).padStart(3, '0')}.example`
  await fillBacklog(store, {
    messages,
    now: NOW - 1_000,
    destinationOf: (n) => (n % 2 === 0 ? 'sick.example' : healthy(n >> 1)),
    dueIn: () => 0,
    bytes: 100,
  })
  const round = async (n: number): Promise<void> => {
    const { requests } = await store.claimDue({ destination: healthy(n), now: NOW, bands: [{ band: 0, limit: 5 }], recipientLimit: 50 })
    if (requests.length !== 5) throw new Error(`claimed ${requests.length} of 5`)
    await store.giveBack(
      requests.flatMap(({ recipients }) => recipients.map(({ id }) => id)),
      store.leaseTerms().owner,
    )
  }
  for (let n = 0; n < ROUNDS; n++) await round(n)
  const before = process.cpuUsage()
  for (let n = 0; n < ROUNDS; n++) await round(n)
  const { user, system } = process.cpuUsage(before)
  await store.close()
  return (user + system) / ROUNDS
}
