/** Parameters of notices, the history and the trash. */
import { option } from '../values/option.ts'
import * as is from '../values/values.ts'

export const NOTICE_OPTIONS = {
  delay_warning_time: option(is.durationsInHours, '0', 'Ages of mail at which the sender gets a delay warning; 0 for none.'),
  bounce_size_limit: option(
    is.size,
    '50000',
    'Maximum size of a message that a notice returns in full; of larger ones the header is returned.',
  ),
  bounce_template_file: option(is.text, '', 'File with templates of notices in the format of bounce(5); built-in templates when empty.'),
  confirm_delay_cleared: option(is.flag, 'no', 'Send a success notice when mail is delivered after a delay warning.'),
  enable_threaded_bounces: option(
    is.flag,
    'no',
    'Refer to the Message-ID of the original in notices, so that mail readers show them together.',
  ),
  notify_classes: option(
    is.words('bounce', '2bounce', 'delay', 'data', 'policy', 'protocol', 'resource', 'software'),
    'resource, software',
    'Notices to the postmaster: copies of failure notices (bounce) and delay warnings (delay), and undeliverable notices (2bounce).',
  ),
  double_bounce_sender: option(
    is.text,
    'double-bounce',
    'Local part of the sender of notices to the postmaster; no notice is sent for mail from it.',
  ),
  bounce_notice_recipient: option(is.text, 'postmaster', 'Recipient of copies of failure notices.'),
  '2bounce_notice_recipient': option(is.text, 'postmaster', 'Recipient of undeliverable notices.'),
  error_notice_recipient: option(
    is.text,
    'postmaster',
    'Recipient of notices to the postmaster of the class resource: that too many recipients of a destination are refused as unknown.',
  ),
  delay_notice_recipient: option(is.text, 'postmaster', 'Recipient of copies of delay warnings.'),
  history_retention: option(is.durationInDays, '3d', 'Time that the history keeps a message that left the queue.'),
  history_limit: option(is.count(), '1000000', 'Maximum messages in the history.'),
  session_transcripts: option(
    is.oneOf('failed', 'no', 'all'),
    'failed',
    'Dialogues with hosts that are kept: those of failed attempts, none, or those of all attempts. Content and secrets are never in one.',
  ),
  session_transcript_limit: option(is.size, '64M', 'Maximum size of the kept dialogues, compressed; the oldest are deleted first.'),
  session_retention: option(is.durationInDays, '3d', 'Time that dialogues are kept; at most history_retention.'),
  returned_content_retention: option(
    is.durationInDays,
    '0',
    'Time that the content of a message stays that did not reach all its recipients, so that deferd history resend can send it again; 0 to delete it at once.',
  ),
  returned_content_limit: option(is.size, '1G', 'Maximum size of these contents; the oldest are deleted first.'),
  event_retention: option(is.durationInDays, '3d', 'Time that events are kept for subscriptions that have not had them.'),
  event_limit: option(is.count(), '1000000', 'Maximum events that are kept for subscriptions; the oldest are deleted first.'),
  trash_lifetime: option(is.durationInDays, '1d', 'Time that deleted mail stays in the trash and can be restored.'),
} as const
