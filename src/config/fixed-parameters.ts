/** Parameters that a reload does not change. */
import type { LoadedConfig } from './load.ts'
import type { OptionName } from './options.ts'

/** Parameters with the value of the start until a restart: the place of the queue, the node in it, and the resolver. */
const FIXED_AT_START = [
  'queue_directory',
  'queue_database',
  'queue_database_durability',
  'node_name',
  'node_lease',
  'dns_servers',
] as const satisfies readonly OptionName[]

/** Parameters whose changes have their effect, or all of it, at a restart. */
export const CHANGED_BY_RESTART = [...FIXED_AT_START, 'inet_protocols'] as const satisfies readonly OptionName[]

/**
 * A configuration that was read again, with the fixed parameters as they are in `former`, and the names of those in which it differed. Another
 * password of the database is no difference: it is used when the node joins again.
 */
export function withFixed(
  loaded: LoadedConfig,
  former: LoadedConfig,
): { readonly loaded: LoadedConfig; readonly kept: readonly OptionName[] } {
  const kept = FIXED_AT_START.filter((name) => loaded.written.get(name) !== former.written.get(name))
  if (kept.length === 0) return { loaded, kept }
  const isKept: ReadonlySet<OptionName> = new Set(kept)
  return {
    kept,
    loaded: {
      ...loaded,
      config: { ...loaded.config, ...Object.fromEntries(kept.map((name) => [name, former.config[name]])) },
      written: new Map([...loaded.written].map(([name, text]) => [name, isKept.has(name) ? (former.written.get(name) ?? text) : text])),
      whereOf: (name) => (isKept.has(name) ? former : loaded).whereOf(name),
    },
  }
}
