/** Parameters of fair shares. */
import type { ClassTable } from './class-table.ts'
import { fieldOfKey, isFieldKey, SHARE_PARTS, type SharePart } from '../limit-terms.ts'
import { tables, valuesOf, type TableSource } from '../lookup-tables.ts'
import { option } from '../option.ts'
import * as is from '../values.ts'

const MOST_SHARE_WEIGHT = 1_000

/** Parts of a share key, in the order in which a message is asked for them. */
export const shareParts = is.kind<readonly SharePart[]>(`one or more of ${SHARE_PARTS.join(', ')}, or header:NAME`, (given) => {
  const reading = is.list(given)
  if (!('value' in reading) || reading.value.length === 0) return undefined
  const parts = reading.value.map((part): SharePart | undefined =>
    isFieldKey(part) ? part : SHARE_PARTS.find((known) => known === part.toLowerCase()),
  )
  return parts.every((part) => part !== undefined) ? parts : undefined
})

export const SHARE_OPTIONS = {
  fair_share: option(
    is.flag,
    'no',
    'Share the deliveries of each class, and of all mail without classes, among the shares of the queue (share_key), so that none waits behind the backlog of another.',
  ),
  share_weight_maps: option(
    tables,
    '',
    'Lookup tables of weights of shares, from 1 to 1000, by the key of the share (share_key); a share without an entry has weight 1.',
  ),
} as const

interface ShareConfig {
  readonly class: ReadonlyMap<string, ClassTable>
  readonly fair_share: boolean
  readonly smtpd_future_release_message_limit: number
  readonly share_key: readonly SharePart[]
  readonly share_weight_maps: readonly TableSource[]
}

export class UnusableWeight extends Error {
  override readonly name = 'UnusableWeight'
}

const weightIn = (text: string): number | undefined => {
  const weight = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0
  return weight >= 1 && weight <= MOST_SHARE_WEIGHT ? weight : undefined
}

/** The refusal of texts that are no weights. */
function unusable(wrong: readonly string[]): UnusableWeight {
  const named = wrong.map((text) => JSON.stringify(text)).join(', ')
  return new UnusableWeight(
    wrong.length === 1
      ? `${named} is not the weight of a share; write a whole number from 1 to ${MOST_SHARE_WEIGHT}`
      : `${named} are not weights of shares; write whole numbers from 1 to ${MOST_SHARE_WEIGHT}`,
  )
}

/** The weight of a share. Throws UnusableWeight for other text. */
export function parseShareWeight(text: string): number {
  const weight = weightIn(text)
  if (weight === undefined) throw unusable([text])
  return weight
}

/** The parameters of shares with their trials. `malformed` are parameters that have the default value because their own was refused. */
export const shareReaders = (config: ShareConfig, malformed: ReadonlySet<string>) => ({
  share_key: () => {
    const field = config.share_key.find((part) => fieldOfKey(part) !== undefined)
    if (field !== undefined && config.smtpd_future_release_message_limit > 0)
      throw new Error(
        `share_key: smtpd_future_release_message_limit counts held messages by what the store has of their clients, and ${field} is not stored: leave one of the two out`,
      )
    if (field === undefined || [...config.class.values()].some(({ allow }) => allow.length > 0)) return
    throw new Error(
      `share_key: ${field} counts for clients that the allow of a class names, and none does: add allow to a [class.NAME] table, or leave ${field} out`,
    )
  },
  share_weight_maps: () => {
    if (config.share_weight_maps.length > 0 && !config.fair_share && !malformed.has('fair_share'))
      throw new Error('share_weight_maps: fair_share is no, so that weights have no effect; set fair_share = "yes", or leave it out')
    const wrong = valuesOf(config.share_weight_maps).filter((text) => weightIn(text) === undefined)
    if (wrong.length > 0) throw new Error(`share_weight_maps: ${unusable(wrong).message}`)
  },
})
