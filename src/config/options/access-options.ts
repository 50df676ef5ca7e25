/** Parameters of access control: which mail of which clients is taken. */
import { tables } from '../values/lookup-tables.ts'
import { option, perListener } from '../values/option.ts'
import { restrictionClasses, restrictions } from '../values/restrictions.ts'
import * as is from '../values/values.ts'

export const ACCESS_OPTIONS = {
  smtpd_client_restrictions: perListener(
    restrictions('check_client_access'),
    '',
    'Restrictions by client, applied at each RCPT before the other lists, see docs/access.md.',
  ),
  smtpd_sender_restrictions: perListener(
    restrictions('check_sender_access'),
    '',
    'Restrictions by sender, applied at each RCPT after smtpd_client_restrictions.',
  ),
  smtpd_relay_restrictions: perListener(
    restrictions('check_recipient_access'),
    'permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination',
    'Clients that may relay to any domain, applied at each RCPT after smtpd_sender_restrictions; it must refuse strangers.',
  ),
  smtpd_recipient_restrictions: perListener(
    restrictions('check_recipient_access'),
    '',
    'Restrictions by recipient, applied at each RCPT to recipients that the client may send to.',
  ),
  smtpd_restriction_classes: option(
    restrictionClasses,
    '',
    'Table of lists of restrictions by name, which lists and results of access tables may name: insiders_only = ["check_sender_access texthash:/PATH", "reject"].',
  ),
  relay_recipient_maps: option(
    tables,
    '',
    'Lookup tables of all recipients in relay_domains, by address or @domain; others are refused with 550. Empty for no such list.',
  ),
  smtpd_sender_login_maps: perListener(
    tables,
    '',
    'Lookup tables of the users that own a sender address, for reject_sender_login_mismatch and its variants.',
  ),
  smtpd_policy_service_timeout: option(is.duration, '100s', 'Time limit for a connection to a policy server, and for its answer.'),
  smtpd_policy_service_default_action: perListener(
    is.text,
    '451 4.3.5 Server configuration problem',
    'Action when a policy server does not answer twice.',
  ),
  smtpd_user_hourly_message_limit: option(
    is.count(),
    '0',
    'Maximum messages of one authenticated user in an hour, above which MAIL gets 450; 0 for no limit.',
  ),
  smtpd_sender_hourly_message_limit: option(
    is.count(),
    '0',
    'Maximum messages of one envelope sender in an hour, above which MAIL gets 450; 0 for no limit.',
  ),
  suppression: option(
    is.oneOf('no', 'warn', 'yes'),
    'no',
    'The suppression list: refuse its addresses at RCPT (yes), log them and accept all the same (warn), or keep and use none (no).',
  ),
  suppression_bounce_limit: option(
    is.count(1),
    '2',
    'Refusals of an address as unknown, for one sender domain, that put it on the suppression list.',
  ),
  suppression_bounce_interval: option(is.duration, '12h', 'Least time between two of these refusals; earlier ones do not count.'),
  suppression_bounce_window: option(is.durationInDays, '14d', 'Time within which these refusals are counted.'),
} as const
