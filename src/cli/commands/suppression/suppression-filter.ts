/** Options of `deferd suppression` as a query. */
import { grouped, maskControls } from '../../../presentation/text.ts'
import type { SuppressionQuery } from '../../../queries/records/suppression-entries.ts'
import type { SuppressionReason } from '../../../store/records/suppression-entry.ts'
import { suppressedAddress, suppressionScope } from '../../../suppression/import-lines.ts'
import type { Duration } from '../../../system/clock.ts'
import { CommandError, EX } from '../../shell/exit.ts'

export interface FilterOptions {
  readonly scope?: string
  readonly address?: string
  readonly reason?: SuppressionReason
  readonly destination?: string
  readonly since?: Duration
}

export const entriesText = (count: number): string => (count === 1 ? '1 entry' : `${grouped(count)} entries`)

export function addressOf(text: string): string {
  const address = suppressedAddress(text)
  if (address === undefined) throw new CommandError(EX.usage, `${JSON.stringify(maskControls(text))} is neither an address nor @domain`)
  return address
}

export function scopeOf(text: string): string {
  const scope = suppressionScope(text)
  if (scope === undefined)
    throw new CommandError(EX.usage, `--scope: ${JSON.stringify(maskControls(text))} is neither * nor a sender domain`)
  return scope
}

export const queryIn = ({ scope, address, reason, destination, since }: FilterOptions): SuppressionQuery => ({
  ...(scope === undefined ? {} : { scope: scopeOf(scope) }),
  ...(address === undefined ? {} : { address: addressOf(address) }),
  ...(reason === undefined ? {} : { reason }),
  ...(destination === undefined ? {} : { destination: destination.toLowerCase() }),
  ...(since === undefined ? {} : { since }),
})
