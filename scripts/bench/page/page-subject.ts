/**
 * The page of a daemon with a large queue.
 */
import type { Subject } from '../figures/subject.ts'
import { OPEN_PAGE, SCREENS } from './open-page-part.ts'

export const PAGE: Subject = {
  name: 'page',
  about: `Measures the page of a daemon with a million queued messages and 10,000
destinations, while mail is relayed: what the page costs the daemon, and the
time to the first byte of each screen.`,
  missing: () => null,
  parts: [OPEN_PAGE, SCREENS],
}
