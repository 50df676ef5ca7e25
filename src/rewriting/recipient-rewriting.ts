/**
 * Rewrites the recipients of a message (Postfix cleanup(8)): canonical form, aliases, recipients of copies. The result has no duplicates.
 */
import type { Config } from '../config/options.ts'
import { addressesIn } from '../mail/address-list.ts'
import { orcptOf, type EnvelopeRecipient, type Notify } from '../mail/envelope.ts'
import { RECIPIENTS_PER_MESSAGE } from '../mail/message.ts'
import type { AddressMap } from './address-map.ts'
import { LookupFailed } from './lookup-table.ts'
import { expandRecipient, type ExpandedRecipient } from './local-aliases.ts'
import { ExpansionFailed, type AliasLimits } from './virtual-aliases.ts'

export type RecipientSettings = AliasLimits & Pick<Config, 'always_bcc' | 'enable_original_recipient'>

export interface RecipientMaps {
  readonly aliases: AddressMap | null
  readonly localAliases: AddressMap | null
  readonly senderBcc: AddressMap | null
  readonly recipientBcc: AddressMap | null
}

export interface RecipientRules {
  readonly settings: RecipientSettings
  readonly maps: RecipientMaps
  /** The canonical form of a recipient address. */
  readonly canonical: (address: string) => string
  /** The form of a mapped address in envelopes. */
  readonly valid: (result: string, original: string) => string
  /** True when the recipients were rewritten before, except for local aliases. */
  readonly isRewritten: boolean
}

/** The recipients of one message, in the order in which they are added. */
export class RewrittenRecipients {
  readonly #rules: RecipientRules
  readonly #list: EnvelopeRecipient[] = []
  readonly #keys = new Set<string>()

  constructor(rules: RecipientRules) {
    this.#rules = rules
  }

  get list(): readonly EnvelopeRecipient[] {
    return this.#list
  }

  /** Adds a recipient of the submission. Returns its canonical address. */
  add(recipient: EnvelopeRecipient): string {
    const { canonical, isRewritten: isComplete } = this.#rules
    const address = isComplete ? recipient.address : canonical(recipient.address)
    const orcpt = recipient.orcpt ?? orcptOf(recipient.address)
    const { addresses, loops } = this.#expanded(address)
    const isAlias = addresses.length !== 1 || addresses[0] !== address
    if (isAlias && addresses.length > 0 && wantsSuccess(recipient.notify)) {
      this.#keep({ ...recipient, address, notify: ['success'], orcpt, alias: 'expanded' }, recipient.address, orcpt)
    }
    for (const loop of loops) {
      this.#keep({ ...recipient, address: loop, orcpt, alias: 'looping' }, recipient.address, orcpt)
    }
    for (const one of addresses) {
      const notify = isAlias ? withoutSuccess(recipient.notify) : recipient.notify
      const isRewritten = one !== recipient.address
      this.#keep({ ...recipient, address: one, notify, orcpt: isRewritten ? orcpt : recipient.orcpt }, recipient.address, orcpt)
    }
    return address
  }

  /** Adds the copies of mail from a sender. */
  addCopiesFrom(sender: string): void {
    if (sender !== '') this.#addCopies(this.#rules.maps.senderBcc, sender)
  }

  /** Adds the copies of mail to a canonical address. */
  addCopiesTo(address: string): void {
    if (address !== '') this.#addCopies(this.#rules.maps.recipientBcc, address)
  }

  /** Adds the recipient of copies of all mail. */
  addCopiesOfAll(): void {
    const { always_bcc: address } = this.#rules.settings
    if (address !== '') this.#addCopy(address, 'always_bcc')
  }

  #addCopies(map: AddressMap | null, address: string): void {
    const value = map?.find(address)?.value
    if (map !== null && value !== undefined) this.#addCopy(value, map.name)
  }

  /** A copy asks for no notices, because its recipient is not known to the sender. */
  #addCopy(value: string, name: string): void {
    const [listed, ...others] = addressesIn(value)
    if (listed === undefined || listed.address === null || others.length > 0) {
      throw new LookupFailed(`${name}: ${JSON.stringify(value)} is not one address; write an address`)
    }
    const address = this.#rules.canonical(this.#rules.valid(listed.address, name))
    for (const one of this.#expanded(address).addresses) {
      const orcpt = one === address ? {} : { orcpt: orcptOf(address) }
      this.#keep({ address: one, notify: 'never', ...orcpt }, address, '')
    }
  }

  #expanded(address: string): ExpandedRecipient {
    const { settings: limits, maps, valid, canonical, isRewritten: isExpanded } = this.#rules
    const { aliases: virtual, localAliases: local } = maps
    if (virtual === null && local === null) return { addresses: [address], loops: [] }
    return expandRecipient(address, { virtual, local, limits, valid, canonical, isExpanded })
  }

  /** Keeps a recipient unless it is a duplicate, in upper or lower case. `from` is the address before rewriting. */
  #keep(recipient: EnvelopeRecipient, from: string, orcpt: string): void {
    const { address, notify, alias } = recipient
    const isSame = this.#rules.settings.enable_original_recipient
    const key = (isSame || alias !== undefined ? [orcpt, notify, from, address, alias].join('\n') : address).toLowerCase()
    if (this.#keys.has(key)) return
    this.#keys.add(key)
    this.#list.push(recipient)
    if (this.#list.length > RECIPIENTS_PER_MESSAGE)
      throw new ExpansionFailed(`more than ${RECIPIENTS_PER_MESSAGE} recipients; send to fewer aliases`)
  }
}

const wantsSuccess = (notify: Notify | undefined): boolean => Array.isArray(notify) && notify.includes('success')

/** NOTIFY of the addresses of an alias (RFC 3461 §5.2.7.3): a success notice is for the alias itself. */
function withoutSuccess(notify: Notify | undefined): Notify | undefined {
  if (notify === undefined || notify === 'never' || !notify.includes('success')) return notify
  const others = notify.filter((one) => one !== 'success')
  return others.length === 0 ? 'never' : others
}
