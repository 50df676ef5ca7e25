/** A turn with what a test says; nothing else was measured. */
import { ONLY_SPEED, type Turn } from '../../../scripts/bench/statistics.ts'

export const turnOf = (part: Partial<Turn>): Turn => ({
  round: 1,
  case: 'kept',
  contestant: 'tree',
  messages: 2_000,
  cpu: 1,
  rate: 1_000,
  ...ONLY_SPEED,
  ...part,
})
