/** Limits of the active queue, from the configuration. */
import type { Config } from '../config/options.ts'
import type { ActiveLimits } from '../queue/scheduler/active-queue.ts'

export function activeLimits(config: Config): ActiveLimits {
  return {
    deliveries: config.default_process_limit,
    messages: config.qmgr_message_active_limit,
    recipients: Math.max(config.qmgr_message_recipient_limit, config.qmgr_message_active_limit),
    transportDelay: config.default_transport_rate_delay,
    slots: {
      cost: config.default_delivery_slot_cost,
      loan: config.default_delivery_slot_loan,
      discount: config.default_delivery_slot_discount,
      minimum: config.default_minimum_delivery_slots,
    },
  }
}
