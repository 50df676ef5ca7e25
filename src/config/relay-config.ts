/** The form of a configuration in code: the names and tables of a configuration file (docs/configuration.md). */
import type { ParameterValue, RelayParameters } from './values/relay-parameters.ts'

/** Members of a table such as `[destination."example.com"]`, by the name in its heading. */
type Tables<Value = ParameterValue> = Readonly<Record<string, Readonly<Record<string, Value>>>>

/** Parameters and tables as in a configuration file (docs/configuration.md), and as a TOML parser reads them from one. */
export type RelayConfig = RelayParameters & {
  readonly transport_maps?: Readonly<Record<string, string>> | string | readonly string[]
  readonly destination?: Tables
  readonly provider?: Tables<ParameterValue | readonly Readonly<Record<string, ParameterValue>>[]>
  readonly dkim?: Tables
  readonly events?: Tables
  readonly oauth?: Tables
  readonly schedule?: Tables
  readonly quota?: Tables<ParameterValue | Readonly<Record<string, ParameterValue>>>
  readonly class?: Tables
}
