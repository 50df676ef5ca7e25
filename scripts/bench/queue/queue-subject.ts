/**
 * A queue with a million deferred messages.
 */
import type { Subject } from '../figures/subject.ts'
import { FIRST_PAGE, LISTING } from './listing-part.ts'
import { START } from './start-part.ts'
import { NEW_MAIL } from './new-mail-part.ts'

export const QUEUE: Subject = {
  name: 'queue',
  about: `Measures a queue with a million deferred messages: the start of a daemon, new
mail beside an empty queue, memory, CPU time at rest, and listings.`,
  missing: () => null,
  parts: [START, NEW_MAIL, FIRST_PAGE, LISTING],
}
