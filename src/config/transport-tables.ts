/** Reads transport_maps: a table of the file, or lookup tables elsewhere. */
import type { Config } from './options.ts'
import { tables } from './values/lookup-tables.ts'
import type { Problem } from './values/problem.ts'
import type { RawSettings } from './values/sources.ts'

export function readTransportMaps(raw: RawSettings, problems: Problem[]): Config['transport_maps'] {
  const maps = new Map<string, string>()
  for (const [key, { value, where }] of raw.transportMaps) {
    if (typeof value === 'string') maps.set(key.toLowerCase(), value)
    else problems.push({ where, text: `transport_maps."${key}": expected "transport:nexthop"` })
  }
  return maps
}

/** The lookup tables of transport_maps when the parameter is a text or a list. */
export function readTransportTables({ transportTables: given }: RawSettings, problems: Problem[]): Config['transport_tables'] {
  if (given === null) return []
  const reading = tables(given.value)
  if ('value' in reading) return reading.value
  problems.push({ where: given.where, text: `transport_maps: ${reading.wrong}` })
  return []
}
