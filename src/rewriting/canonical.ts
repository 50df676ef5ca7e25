/** Maps single addresses (Postfix cleanup(8)): the maps of the role, then canonical_maps, then masquerading. */
import type { Config } from '../config/options.ts'
import type { AddressRole } from '../mail/header-addresses.ts'
import type { AddressMap } from './address-map.ts'
import type { Masquerade } from './masquerade.ts'

/** The place of an address, as the parameters with classes name it. */
export type AddressClass = Config['canonical_classes'][number]

/** The maps that apply to one class of addresses; those that do not apply are null. */
export interface ClassMaps {
  readonly ofRole: AddressMap | null
  readonly common: AddressMap | null
  readonly masquerade: Masquerade | null
}

export const classOf = (place: 'envelope' | 'header', role: AddressRole): AddressClass => `${place}_${role}`

/** The address in its canonical form. Throws LookupFailed. */
export function canonical(address: string, { ofRole, common, masquerade }: ClassMaps): string {
  let result = ofRole === null ? address : ofRole.one(address)
  if (common !== null) result = common.one(result)
  return masquerade === null ? result : masquerade.apply(result)
}
