import type { NewSuppression, SuppressionKey } from '../../src/store/records/suppression-entry.ts'

/** An entry of the suppression list that an operator added, without an end. */
export const operatorEntry = (key: SuppressionKey): NewSuppression => ({
  ...key,
  reason: 'manual',
  reply: null,
  destination: null,
  since: 0,
  until: null,
  hits: 0,
  firstHitAt: null,
  lastHitAt: null,
  addedBy: 'op',
  listings: 0,
  strikes: [],
})
