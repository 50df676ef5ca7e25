/** Parameters of address rewriting. */
import { tables } from '../values/lookup-tables.ts'
import { option } from '../values/option.ts'
import * as is from '../values/values.ts'

const ADDRESS_CLASSES = ['envelope_sender', 'envelope_recipient', 'header_sender', 'header_recipient'] as const

export const REWRITING_OPTIONS = {
  recipient_delimiter: option(
    is.text,
    '',
    'Characters before the extension of a local part: + makes ann+news an address of ann. None when empty.',
  ),
  propagate_unmatched_extensions: option(
    is.words('canonical', 'virtual', 'alias', 'forward', 'include', 'generic'),
    'canonical, virtual',
    'Lookups that add an address extension without a key of its own to the result.',
  ),
  canonical_maps: option(tables, '', 'Lookup tables that map addresses of senders and recipients, see docs/rewriting.md.'),
  canonical_classes: option(is.words(...ADDRESS_CLASSES), ADDRESS_CLASSES.join(', '), 'Addresses that canonical_maps apply to.'),
  sender_canonical_maps: option(tables, '', 'Lookup tables that map sender addresses, before canonical_maps.'),
  sender_canonical_classes: option(
    is.words('envelope_sender', 'header_sender'),
    'envelope_sender, header_sender',
    'Addresses that sender_canonical_maps apply to.',
  ),
  recipient_canonical_maps: option(tables, '', 'Lookup tables that map recipient addresses, before canonical_maps.'),
  recipient_canonical_classes: option(
    is.words('envelope_recipient', 'header_recipient'),
    'envelope_recipient, header_recipient',
    'Addresses that recipient_canonical_maps apply to.',
  ),
  masquerade_domains: option(is.list, '', 'Domains whose subdomains are removed from addresses; !domain keeps those below it.'),
  masquerade_classes: option(
    is.words(...ADDRESS_CLASSES),
    'envelope_sender, header_sender, header_recipient',
    'Addresses that masquerade_domains apply to.',
  ),
  masquerade_exceptions: option(is.list, '', 'Local parts whose addresses masquerade_domains leave.'),
  virtual_alias_maps: option(tables, '', 'Lookup tables that replace recipients by one or more addresses, after the maps above.'),
  alias_maps: option(
    tables,
    '',
    'Lookup tables that replace recipients at $myorigin, $myhostname and localhost, by local part; values are addresses or :include:/path.',
  ),
  virtual_alias_expansion_limit: option(is.count(1), '1000', 'Maximum addresses of one alias; above it mail is refused with 451.'),
  virtual_alias_recursion_limit: option(
    is.count(1),
    '1000',
    'Maximum lookups in succession for an alias; above it mail is refused with 451.',
  ),
  virtual_alias_address_length_limit: option(
    is.count(1),
    '1000',
    'Maximum bytes of an address of an alias; above it mail is refused with 451.',
  ),
  alias_domains: option(
    is.list,
    '$myorigin, $myhostname, localhost',
    'Domains whose local parts alias_maps has (in Postfix, those of mydestination).',
  ),
  enable_original_recipient: option(
    is.flag,
    'yes',
    'Deliver a copy for each address of the sender that is rewritten to the same recipient; with no, one copy.',
  ),
  always_bcc: option(is.text, '', 'Address that gets a copy of all mail; none when empty.'),
  sender_bcc_maps: option(tables, '', 'Lookup tables of addresses that get a copy of mail from a sender.'),
  smtp_generic_maps: option(tables, '', 'Lookup tables that map addresses of mail to next hops by SMTP, when it is sent.'),
  header_checks: option(tables, '', 'Lookup tables of actions for header fields of mail that arrives, see docs/checks.md.'),
  mime_header_checks: option(
    tables,
    '$header_checks',
    'The same for fields of body parts, and for MIME fields (Content-Type, Content-Disposition, …) of all headers.',
  ),
  nested_header_checks: option(tables, '$header_checks', 'The same for the other fields of attached messages.'),
  body_checks: option(tables, '', 'Lookup tables of actions for body lines of mail that arrives, see docs/checks.md.'),
  body_checks_size_limit: option(is.size, '51200', 'Octets of each body part that body_checks examine; 0 for all.'),
  smtp_header_checks: option(tables, '', 'Lookup tables of actions for header fields of mail to next hops by SMTP, when it is sent.'),
  recipient_bcc_maps: option(tables, '', 'Lookup tables of addresses that get a copy of mail to a recipient.'),
} as const
