/** Text about the delivery slots. Pure. */
import type { DeliverySlots } from '../store/destination-status.ts'
import { grouped } from './text.ts'

/** Addresses that are named. */
const NAMED = 3

/** `deliveries 100/100: 20 connecting to 192.0.2.31, 3 to 192.0.2.32`. */
export function slotsText({ inFlight, limit, connecting }: DeliverySlots): string {
  const [first, ...others] = connecting.slice(0, NAMED)
  const slots = `deliveries ${grouped(inFlight)}/${grouped(limit)}`
  if (first === undefined) return slots
  return [
    `${slots}: ${grouped(first.count)} connecting to ${first.address}`,
    ...others.map((one) => `${grouped(one.count)} to ${one.address}`),
  ].join(', ')
}
