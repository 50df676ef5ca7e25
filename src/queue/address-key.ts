/** The key with which `log_addresses = "hashed"` tells addresses: that of erasures, so that both give equal texts. */
import type { Config } from '../config/options.ts'
import type { ToldAddresses } from '../mail/told-addresses.ts'
import { rethrowUnlessUnavailable } from '../store/queue-store.ts'
import { HOUR } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'
import { currentKey, type KeyDeps } from './erasing.ts'

type KeyConfig = Pick<Config, 'log_addresses'>

/** Null, without a statement, for another form. Rejects with StoreUnavailable. */
export const addressKey = async ({ log_addresses: form }: KeyConfig, deps: KeyDeps): Promise<string | null> =>
  form === 'hashed' ? currentKey(deps) : null

/** Takes the key of a new year, which this node or another one makes. */
export function renewAddressKey({
  config,
  addresses,
  ...deps
}: KeyDeps & { readonly config: () => KeyConfig; readonly addresses: ToldAddresses }): PeriodicTask {
  const run = async (): Promise<void> => {
    const key = await addressKey(config(), deps)
    addresses.change(config().log_addresses, key)
  }
  return every(deps.clock, HOUR, run, { failed: rethrowUnlessUnavailable })
}
