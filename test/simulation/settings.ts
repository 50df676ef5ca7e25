/** Settings of one destination in a scenario, computed independently of the product's code. */
import { parseDuration } from '../../src/system/duration.ts'
import type { Duration } from '../../src/system/clock.ts'
import type { Scenario, Value } from './scenario.ts'

export interface SimulatedSettings {
  duration(destination: string, name: string, byDefault: string): Duration
  number(destination: string, name: string, byDefault: number): number
  text(destination: string, name: string, byDefault: string): string
  /** Ages of delay warnings, ascending. */
  readonly warningAges: readonly Duration[]
}

export function settingsOf({ config, tables }: Scenario): SimulatedSettings {
  const value = (destination: string, name: string): Value | undefined =>
    tables[destination]?.[name.replace(/^default_/, '')] ?? config[name]
  const ages = [config['delay_warning_time'] ?? []].flat().map((age) => parseDuration(String(age)) ?? 0)
  return {
    duration: (destination, name, byDefault) => parseDuration(String(value(destination, name) ?? byDefault)) ?? 0,
    number: (destination, name, byDefault) => Number(value(destination, name) ?? byDefault),
    text: (destination, name, byDefault) => String(value(destination, name) ?? byDefault),
    warningAges: [...new Set(ages)].filter((age) => age > 0).toSorted((a, b) => a - b),
  }
}
