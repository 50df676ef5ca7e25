/** Limits of the simulation: settings that a world cannot simulate are refused when they are given. docs/testkit.md lists the rest. */
import { configFrom, type LoadedConfig } from '../../config/load.ts'
import { NODE_OPTIONS } from '../../config/options/node-options.ts'
import type { RelayConfig } from '../../config/relay-config.ts'
import { ConfigError, type Problem } from '../../config/values/problem.ts'
import { requireKnownOptions } from './argument-checks.ts'
import { WORLD_OPTIONS } from './world-options.ts'

const NODES =
  'a world is one relay with a queue of its own: several nodes, and partitions between them, are not simulated; test them with daemons on one PostgreSQL (docs/cluster.md)'

/** Loads the configuration of a world. Throws a ConfigError with all mistakes and a sentence for each parameter of several nodes. */
export function loadSimulated(given: RelayConfig, hostname: string): LoadedConfig {
  const refused: readonly Problem[] = Object.keys(NODE_OPTIONS)
    .filter((name) => name in given)
    .map((where) => ({ where, text: NODES }))
  const loaded = configOr(refused, given, hostname)
  if (refused.length > 0) throw new ConfigError(refused)
  return loaded
}

function configOr(refused: readonly Problem[], given: RelayConfig, hostname: string): LoadedConfig {
  try {
    return configFrom(given, hostname)
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigError([...refused, ...error.problems]) : error
  }
}

/** Throws a TypeError for an unknown option of `createWorld`. */
export function requireWorldOptions(options: object): void {
  if (typeof options === 'object' && options !== null && 'nodes' in options)
    throw new TypeError(`createWorld has no option "nodes": ${NODES}`)
  requireKnownOptions('createWorld', options, WORLD_OPTIONS)
}
