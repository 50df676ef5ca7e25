/** Text about the delivery slots. Pure. */
import { grouped } from './text.ts'

/** The slots in JSON. */
interface ShownSlots {
  readonly in_flight: number
  readonly limit: number
  readonly connecting: readonly { readonly address: string; readonly count: number }[]
}

/** Number of addresses that are named. */
const ADDRESSES_NAMED = 3

/** `deliveries 100/100: 20 connecting to 192.0.2.31, 3 connecting to 192.0.2.32`. */
export function slotsText({ in_flight: inFlight, limit, connecting }: ShownSlots): string {
  return `deliveries ${grouped(inFlight)}/${grouped(limit)}${connectingText(connecting)}`
}

/** `: 20 connecting to 192.0.2.31, 3 connecting to 192.0.2.32`; empty for none. */
export function connectingText(connecting: ShownSlots['connecting']): string {
  const named = connecting.slice(0, ADDRESSES_NAMED).map(({ address, count }) => `${grouped(count)} connecting to ${address}`)
  return named.length === 0 ? '' : `: ${named.join(', ')}`
}
