/** Text about the delivery slots. Pure. */
import { grouped } from './text.ts'

/** The slots in JSON. */
interface ShownSlots {
  readonly in_flight: number
  readonly limit: number
  readonly connecting: readonly { readonly address: string; readonly count: number }[]
}

/** Addresses that are named. */
const NAMED = 3

/** `deliveries 100/100: 20 connecting to 192.0.2.31, 3 to 192.0.2.32`. */
export function slotsText({ in_flight: inFlight, limit, connecting }: ShownSlots): string {
  const [first, ...others] = connecting.slice(0, NAMED)
  const slots = `deliveries ${grouped(inFlight)}/${grouped(limit)}`
  if (first === undefined) return slots
  return [
    `${slots}: ${grouped(first.count)} connecting to ${first.address}`,
    ...others.map((one) => `${grouped(one.count)} to ${one.address}`),
  ].join(', ')
}
