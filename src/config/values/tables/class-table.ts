/** A class of mail: a `[class.NAME]` table. */
import type { Duration } from '../../../system/clock.ts'
import type { SchedulingClass } from '../mail-classes.ts'

/** Parameters that differ for the mail of a class. They come before those of destinations and providers. */
export const CLASS_SETTINGS = [
  'maximal_queue_lifetime',
  'maximal_delivery_attempts',
  'minimal_backoff_time',
  'maximal_backoff_time',
  'delay_warning_time',
] as const

interface ClassSettings {
  readonly maximal_queue_lifetime?: Duration
  readonly maximal_delivery_attempts?: number
  readonly minimal_backoff_time?: Duration
  readonly maximal_backoff_time?: Duration
  readonly delay_warning_time?: readonly Duration[]
}

export interface ClassTable extends SchedulingClass {
  /** Users of AUTH, `token:NAME` and networks whose mail may ask for the class although it is above that of their mail. */
  readonly allow: readonly string[]
  /** Value of MT-PRIORITY (RFC 6710) that stands for the class, from -9 to 9; null for none. */
  readonly priority: number | null
  readonly settings: ClassSettings
}
