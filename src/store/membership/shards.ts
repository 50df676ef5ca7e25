/**
 * Shards of destinations. On a queue that several nodes share, each destination belongs to one shard and each shard has one owner,
 * who alone schedules its destinations. The number and the hash are part of the schema: a change moves all mail.
 */
import { crc32 } from '../../system/crc32.ts'
import type { DestinationName } from '../../mail/message.ts'

export const SHARDS = 256

/** Number of a shard: 0 to SHARDS - 1. */
export type Shard = number

/** Shard of a destination: CRC-32 of its name in UTF-8, modulo SHARDS. */
export const shardOf = (destination: DestinationName): Shard => crc32(destination) % SHARDS

/** Shard of a subscription, whose owner sends its events. */
export const subscriptionShard = (name: string): Shard => shardOf(`events:${name}`)
