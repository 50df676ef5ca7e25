/** The weights of shares (share_weight_maps). */
import type { Config } from '../../config/options.ts'
import type { FairShares } from '../../config/values/mail-classes.ts'
import { parseShareWeight, UnusableWeight } from '../../config/values/tables/share-options.ts'
import { constantOf } from '../../patterns/result-text.ts'
import { LookupFailed, openTable, type OpenedTable } from '../../rewriting/lookup-table.ts'
import { readText } from '../../rewriting/tables.ts'

/** Maximum number of shares whose weights are remembered. */
const REMEMBERED = 10_000

const verify = (text: string): void => void parseShareWeight(text)

/** Opens the tables. Throws an Error that names parameter and path when a file cannot be read, or a weight cannot be used. */
export const openShareWeights = ({ share_weight_maps: sources }: Pick<Config, 'share_weight_maps'>): OpenedTable =>
  openTable('share_weight_maps', sources, {
    readFile: readText,
    substitutes: false,
    verify,
    effect: 'the share has weight 1',
    accept: (result) => {
      const text = constantOf(result)
      if (text !== undefined) verify(text)
      return result
    },
  })

export class ShareWeights implements FairShares {
  readonly #table: OpenedTable['table']
  readonly #known = new Map<string, number>()

  private constructor(table: OpenedTable['table']) {
    this.#table = table
  }

  /** Null when deliveries are not shared fairly. */
  static of({ fair_share: isFair }: Pick<Config, 'fair_share'>, table: OpenedTable['table']): ShareWeights | null {
    return isFair ? new ShareWeights(table) : null
  }

  weightOf(share: string): number {
    let weight = this.#known.get(share)
    if (weight === undefined) {
      weight = this.#read(share)
      if (this.#known.size >= REMEMBERED) this.#known.clear()
      this.#known.set(share, weight)
    }
    return weight
  }

  /** An entry that cannot be used, of which the opening of the tables has told, and a pattern that takes too long leave the weight at 1. */
  #read(share: string): number {
    try {
      const text = this.#table.find(share.toLowerCase(), share)
      return text === undefined ? 1 : parseShareWeight(text)
    } catch (error) {
      if (error instanceof LookupFailed || error instanceof UnusableWeight) return 1
      throw error
    }
  }
}
