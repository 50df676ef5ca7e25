/** Deletes what a key has used of quotas, by order of an operator. */
import type { QuotaTable } from '../../config/values/tables/quota-table.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import type { Actor } from '../../store/records/audit-log.ts'
import type { Clock } from '../../system/clock.ts'
import { shellWord } from '../../system/shell-word.ts'
import { countedKey } from './share-key.ts'

interface QuotaChangesDeps {
  readonly store: Pick<QueueStore, 'records'>
  readonly clock: Pick<Clock, 'now'>
  readonly tables: () => readonly Pick<QuotaTable, 'name' | 'key'>[]
  /** Called after each change, with the key as it is counted. */
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
    const { store, clock, tables, changed } = this.#deps
    const { quotaCounts, audit } = store.records
    const now = clock.now()
    const uses = tables().flatMap(({ name, key: part }) =>
      quota === null || name === quota ? [{ quota: name, key: countedKey(part, key) }] : [],
    )
    const counted = await Promise.all(uses.map(async (use) => ({ use, slices: await quotaCounts.of(use, now) })))
    const used = counted.flatMap(({ use, slices }) => (slices.length > 0 ? [use] : []))
    if (used.length === 0) return false
    for (const use of used) await quotaCounts.forget(use)
    const words = [key, ...(quota === null ? [] : [`--quota=${quota}`])]
    await audit.add({ at: now, ...actor, action: 'quota-reset', arguments: words.map(shellWord).join(' '), changed: used.length })
    for (const one of new Set(used.map((use) => use.key))) await changed(one)
    return true
  }
}
