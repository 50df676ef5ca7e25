/** The states of providers as the queue keeps them, for what does not schedule them. */
import { suspensionsOf, type LiveProvider } from './provider-state.ts'
import type { RecordReader } from './records.ts'

/** A provider with what applies to all its destinations. */
export type ProviderState = Pick<LiveProvider, 'name' | 'effects' | 'suspension'>

/** Reads the saved states once, and finds that of a provider. */
export async function savedProviders({ providers }: Pick<RecordReader, 'providers'>): Promise<(name: string) => ProviderState> {
  const saved = { effects: await providers.all(), orders: await providers.suspensions() }
  const effects = new Map(saved.effects.map((one) => [one.provider, one.effects]))
  const suspensions = suspensionsOf(saved)
  return (name) => ({ name, effects: effects.get(name) ?? [], suspension: suspensions.get(name) ?? null })
}
