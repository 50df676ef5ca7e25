/** Deletes what a key has used of quotas, by order of an operator. */
import type { QueueStore } from '../../store/queue-store.ts'
import type { Actor } from '../../store/records/audit-log.ts'
import type { Clock } from '../../system/clock.ts'
import { shellWord } from '../../system/shell-word.ts'

interface QuotaChangesDeps {
  readonly store: Pick<QueueStore, 'records'>
  readonly clock: Pick<Clock, 'now'>
  /** Names of the quotas. */
  readonly names: () => readonly string[]
  /** Called after each change. */
  readonly changed: (key: string) => Promise<void>
}

export interface QuotaReset extends Actor {
  readonly key: string
  /** Null for all quotas. */
  readonly quota: string | null
}

export class QuotaChanges {
  readonly #deps: QuotaChangesDeps

  constructor(deps: QuotaChangesDeps) {
    this.#deps = deps
  }

  /** Returns false, without effect, when no quota counts the key. */
  async reset({ key, quota, ...actor }: QuotaReset): Promise<boolean> {
    const { store, clock, names, changed } = this.#deps
    const { quotaCounts, audit } = store.records
    const now = clock.now()
    const wanted = names().filter((name) => quota === null || name === quota)
    const counted = await Promise.all(wanted.map(async (name) => ({ name, slices: await quotaCounts.of({ quota: name, key }, now) })))
    const used = counted.filter(({ slices }) => slices.length > 0)
    if (used.length === 0) return false
    for (const { name } of used) await quotaCounts.forget({ quota: name, key })
    const words = [key, ...(quota === null ? [] : [`--quota=${quota}`])]
    await audit.add({ at: now, ...actor, action: 'quota-reset', arguments: words.map(shellWord).join(' '), changed: used.length })
    await changed(key)
    return true
  }
}
