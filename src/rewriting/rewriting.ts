/**
 * Rewrites the addresses of new mail (Postfix cleanup(8), docs/rewriting.md): envelope sender, envelope recipients and header
 * addresses. Compiled once per configuration.
 */
import type { Config } from '../config/options.ts'
import { isInternational } from '../mail/address.ts'
import { parseAddress } from '../mail/address-path.ts'
import type { Envelope, EnvelopeRecipient } from '../mail/envelope.ts'
import type { AddressRole } from '../mail/header-addresses.ts'
import { AddressMap, type AddressRules } from './address-map.ts'
import { addressRules, type AddressSettings } from './lookup-rules.ts'
import { canonical, classOf, type AddressClass, type ClassMaps } from './canonical.ts'
import { LookupFailed } from './lookup-table.ts'
import { Masquerade, type MasqueradeSettings } from './masquerade.ts'
import { RewrittenRecipients, type RecipientMaps, type RecipientRules, type RecipientSettings } from './recipient-rewriting.ts'
import type { TableName, Tables } from './tables.ts'

type RewritingSettings = AddressSettings &
  MasqueradeSettings &
  RecipientSettings &
  Pick<
    Config,
    | 'propagate_unmatched_extensions'
    | 'alias_domains'
    | 'canonical_classes'
    | 'sender_canonical_classes'
    | 'recipient_canonical_classes'
    | 'masquerade_classes'
  >

export class Rewriting {
  readonly #myorigin: string
  readonly #classes: Readonly<Record<AddressClass, ClassMaps>>
  readonly #recipients: RecipientRules
  /** Maps a header address; absent when no map applies to header addresses. Throws LookupFailed. */
  readonly header: ((address: string, role: AddressRole) => string) | undefined

  private constructor(config: RewritingSettings, tables: Tables) {
    const maps = new Maps(config, tables)
    this.#myorigin = config.myorigin
    this.#classes = maps.classes()
    this.#recipients = {
      settings: config,
      maps: maps.ofRecipients(),
      canonical: (address) => this.#canonical(address, 'recipient'),
      valid: (result, original) => this.#valid(result, original),
      isRewritten: false,
    }
    const ofHeader = { sender: this.#classes.header_sender, recipient: this.#classes.header_recipient }
    const inHeader = Object.values(ofHeader).some(isUsed)
    this.header = inHeader ? (address, role) => canonical(address, ofHeader[role]) : undefined
  }

  /** The rewriting of a configuration; null when no parameter asks for any. */
  static of(config: RewritingSettings, tables: Tables): Rewriting | null {
    const isAsked =
      [...tables.keys()].some((name) => name !== 'smtp_generic_maps') || config.masquerade_domains.length > 0 || config.always_bcc !== ''
    return isAsked ? new Rewriting(config, tables) : null
  }

  /** The rewritten envelope of a submission, with the recipients of copies. Throws LookupFailed. */
  envelope(envelope: Envelope): Envelope {
    const sender = this.#canonical(envelope.sender, 'sender')
    const recipients = new RewrittenRecipients(this.#recipients)
    recipients.addCopiesFrom(sender)
    for (const recipient of envelope.recipients) recipients.addCopiesTo(recipients.add(recipient))
    recipients.addCopiesOfAll()
    const smtputf8 = envelope.smtputf8 === true || [sender, ...recipients.list.map(({ address }) => address)].some(isInternational)
    return { ...envelope, sender, recipients: recipients.list, smtputf8: smtputf8 ? true : envelope.smtputf8 }
  }

  /** The rewritten recipients of a notice, which has no copies. Throws LookupFailed. */
  recipients(recipients: readonly EnvelopeRecipient[]): readonly EnvelopeRecipient[] {
    const rewritten = new RewrittenRecipients(this.#recipients)
    for (const recipient of recipients) rewritten.add(recipient)
    return rewritten.list
  }

  /**
   * The recipients for one recipient of mail that Postfix has rewritten, except for aliases of local users, which it replaces in a
   * delivery. Throws LookupFailed.
   */
  ofLocalAlias(recipient: EnvelopeRecipient): readonly EnvelopeRecipient[] {
    const rewritten = new RewrittenRecipients({ ...this.#recipients, isRewritten: true })
    rewritten.add(recipient)
    return rewritten.list
  }

  /** True for a recipient that a table replaces, or names as it is. Throws LookupFailed. */
  isListed(address: string): boolean {
    const { ofRole, common } = this.#classes.envelope_recipient
    return [ofRole, common, this.#recipients.maps.aliases].some((map) => map !== null && map.find(address) !== null)
  }

  #canonical(address: string, role: AddressRole): string {
    const result = canonical(address, this.#classes[classOf('envelope', role)])
    return result === address ? address : this.#valid(result, address)
  }

  /** The address as it is in envelopes. */
  #valid(result: string, original: string): string {
    if (result === '') return ''
    const address = parseAddress(result, this.#myorigin)
    if (address !== undefined) return address
    throw new LookupFailed(`${original} is mapped to ${JSON.stringify(result)}, which is not an address; correct the table`)
  }
}

const isUsed = ({ ofRole, common, masquerade }: ClassMaps): boolean => ofRole !== null || common !== null || masquerade !== null

class Maps {
  readonly #config: RewritingSettings
  readonly #tables: Tables
  readonly #rules: AddressRules
  readonly #aliasRules: AddressRules

  constructor(config: RewritingSettings, tables: Tables) {
    this.#config = config
    this.#tables = tables
    this.#rules = addressRules(config)
    const localDomains = new Set(config.alias_domains.map((domain) => domain.toLowerCase()))
    this.#aliasRules = { ...this.#rules, localDomains }
  }

  classes(): Readonly<Record<AddressClass, ClassMaps>> {
    const { sender_canonical_classes: ofSender, recipient_canonical_classes: ofRecipient } = this.#config
    const [sender, recipient] = [this.#canonical('sender_canonical_maps'), this.#canonical('recipient_canonical_maps')]
    return {
      envelope_sender: this.#classMaps('envelope_sender', ofSender.includes('envelope_sender') ? sender : null),
      envelope_recipient: this.#classMaps('envelope_recipient', ofRecipient.includes('envelope_recipient') ? recipient : null),
      header_sender: this.#classMaps('header_sender', ofSender.includes('header_sender') ? sender : null),
      header_recipient: this.#classMaps('header_recipient', ofRecipient.includes('header_recipient') ? recipient : null),
    }
  }

  #classMaps(name: AddressClass, ofRole: AddressMap | null): ClassMaps {
    const { canonical_classes, masquerade_classes, masquerade_domains } = this.#config
    const hidesDomains = masquerade_domains.length > 0 && masquerade_classes.includes(name)
    return {
      ofRole,
      common: canonical_classes.includes(name) ? this.#canonical('canonical_maps') : null,
      masquerade: hidesDomains ? new Masquerade(this.#config) : null,
    }
  }

  ofRecipients(): RecipientMaps {
    return {
      aliases: this.#map('virtual_alias_maps', 'virtual'),
      localAliases: this.#map('alias_maps', 'alias', this.#aliasRules),
      senderBcc: this.#map('sender_bcc_maps'),
      recipientBcc: this.#map('recipient_bcc_maps'),
    }
  }

  #canonical(name: TableName): AddressMap | null {
    return this.#map(name, 'canonical')
  }

  /** `lookups` is the word of propagate_unmatched_extensions; absent when extensions are never added. */
  #map(name: TableName, lookups?: 'canonical' | 'virtual' | 'alias', rules = this.#rules): AddressMap | null {
    const table = this.#tables.get(name)
    const propagates = lookups !== undefined && this.#config.propagate_unmatched_extensions.includes(lookups)
    return table === undefined ? null : new AddressMap(table, rules, propagates)
  }
}
