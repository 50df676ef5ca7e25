/**
 * The shards of destinations, as one node knows them: by the name of the destination, or by its provider once that is known, so that one
 * node schedules all destinations of a provider. A version tells which changes the node has seen; its transactions fail when it
 * has missed one.
 */
import { nameOfProvider, type ProviderDirectory } from '../../config/provider-directory.ts'
import type { DestinationName } from '../../mail/message.ts'
import { OwnShares } from '../share-counts.ts'
import { shardOf, type Shard } from './shards.ts'

/** Shard of a destination of a provider; null for none. */
export const shardUnder = (destination: DestinationName, provider: string | null): Shard =>
  shardOf(provider === null ? destination : nameOfProvider(provider))

/** A change of the provider of a destination; null for none. */
export interface KeyChange {
  readonly destination: DestinationName
  readonly provider: string | null
}

export class ShardKeys {
  readonly providers: ProviderDirectory
  /** Counts of shares of this node, which begin and end by the same changes. */
  readonly shares = new OwnShares()
  #version: number

  constructor(providers: ProviderDirectory, version = 0) {
    this.providers = providers
    this.#version = version
  }

  /** Number of the last change that was seen. */
  get version(): number {
    return this.#version
  }

  shardOf(destination: DestinationName): Shard {
    return shardUnder(destination, this.providers.of(destination))
  }

  /** Applies the changes up to a version. */
  apply(version: number, changes: readonly KeyChange[], sharesSince: number | null): void {
    this.shares.begin(sharesSince)
    for (const { destination, provider } of changes) this.providers.set(destination, provider)
    this.#version = version
  }
}
