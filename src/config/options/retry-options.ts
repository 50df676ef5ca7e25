/** Parameters of the retry schedule, of concurrency and of rates. */
import { option, perDestination } from '../values/option.ts'
import * as is from '../values/values.ts'

export const RETRY_OPTIONS = {
  minimal_backoff_time: perDestination(
    is.duration,
    '300s',
    'First wait of a deferred recipient, and wait before the first probe of a dead destination.',
  ),
  maximal_backoff_time: perDestination(is.duration, '4000s', 'Maximum wait between attempts and between probes.'),
  maximal_queue_lifetime: perDestination(
    is.durationInDays,
    '2d',
    'Lifetime of mail: it expires after the last attempt at this age, and the sender gets a notice.',
  ),
  bounce_queue_lifetime: perDestination(
    is.durationInDays,
    '$maximal_queue_lifetime',
    'Lifetime of mail from <>; at most maximal_queue_lifetime.',
  ),
  maximal_delivery_attempts: perDestination(
    is.count(),
    '0',
    'Failed attempts after which mail expires before the end of its lifetime, without those after a flush or returned for congestion; 0 for no limit.',
  ),
  retry_backoff: perDestination(is.textBlock, 'doubling', 'Retry policy, see docs/backoff.md.'),
  retry_jitter: perDestination(is.fraction, '0', 'Fraction j that spreads each wait w over [w, w·(1+j)].'),
  queue_run_delay: option(is.duration, '300s', 'Interval of the safety scan for overlooked due mail.'),
  default_process_limit: option(is.count(1), '100', 'Maximum concurrent deliveries.'),
  default_delivery_slot_cost: option(
    is.count(),
    '5',
    'Deliveries of a large message per slot that it earns for small messages to preempt it; below 2 for no preemption.',
  ),
  default_delivery_slot_loan: option(is.count(), '3', 'Slots that a small message may use before they are earned.'),
  default_delivery_slot_discount: option(is.count(0, 100), '50', 'Percentage of the needed slots that a small message gets in advance.'),
  default_minimum_delivery_slots: option(is.count(), '3', 'Minimum size of a message that can be preempted, in slots.'),
  qmgr_message_active_limit: option(is.count(1), '20000', 'Maximum messages in the active queue.'),
  qmgr_message_recipient_limit: option(is.count(1), '20000', 'Maximum recipients in the active queue.'),
  initial_destination_concurrency: perDestination(is.count(1), '5', 'Initial concurrency window of a destination.'),
  default_destination_concurrency_limit: perDestination(
    is.count(),
    '20',
    'Maximum concurrent deliveries to one destination; 0 for no limit.',
  ),
  default_destination_unsettled_limit: perDestination(
    is.concurrencyMultiple,
    '5*concurrency',
    'Maximum outcomes of deliveries to one destination that are written and not yet synced to disk; a loss of power repeats at most these and the deliveries in flight. A number, or a multiple of its concurrency limit.',
  ),
  default_destination_recipient_limit: perDestination(is.count(), '50', 'Maximum recipients in one delivery; 0 for no limit.'),
  default_destination_rate_delay: perDestination(
    is.duration,
    '0',
    'Delay after each delivery to a destination, which then has one at a time; 0 for none.',
  ),
  default_transport_rate_delay: option(
    is.duration,
    '0',
    'Delay after each delivery of a transport to any destination, one at a time; 0 for none.',
  ),
  default_destination_message_rate_limit: perDestination(
    is.count(),
    '0',
    'Maximum deliveries per minute to one destination, evenly spaced; 0 for no limit. See default_destination_adaptive_rate.',
  ),
  default_destination_adaptive_rate: perDestination(
    is.flag,
    'yes',
    'Learn the message rate that a destination accepts from refusals that ask for less mail, and keep to it for a time. Destinations of a provider share one rate and the value of its table.',
  ),
  provider_concurrency_limit: option(
    is.count(),
    '0',
    'Maximum concurrent deliveries to all destinations of a provider (docs/providers.md), for tables without own limit; 0 for no limit.',
  ),
  provider_message_rate_limit: option(
    is.count(),
    '0',
    'Maximum deliveries per minute to all destinations of a provider, evenly spaced, for tables without own limit; 0 for no limit.',
  ),
  default_destination_concurrency_control: perDestination(
    is.oneOf('postfix', 'reno', 'tahoe'),
    'postfix',
    'Control of the concurrency window of a destination: Postfix’s feedback, or TCP Reno or Tahoe.',
  ),
  default_destination_concurrency_decrease_factor: perDestination(
    is.factor,
    '0.5',
    'Part of the deliveries in flight that the window of reno and tahoe falls back to after a failure; 0.9 suits a destination whose limit does not change.',
  ),
  default_destination_concurrency_positive_feedback: perDestination(
    is.feedback,
    '1/concurrency',
    'Growth of the concurrency window with each answered delivery.',
  ),
  default_destination_concurrency_negative_feedback: perDestination(
    is.feedback,
    '1/concurrency',
    'Reduction of the concurrency window with each failed delivery.',
  ),
  default_destination_concurrency_failed_cohort_limit: perDestination(
    is.count(),
    '1',
    'Failed pseudo-cohorts (windows full of failures) after which a destination is dead; 0 for never.',
  ),
} as const
