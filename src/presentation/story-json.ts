/** Formats one message with its attempts and the rule of its next attempt as JSON. */
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { isLive, type Recipient } from '../mail/message.ts'
import type { MessageDetails } from '../store/queue-reader.ts'
import type { WallView } from '../system/wall-view.ts'
import { attemptJson, messageJson } from './message-json.ts'
import { ruleFor } from './next-attempt-reason.ts'
import { nextAttemptAt, waitsFor, type DestinationRecords, type WaitsFor } from './recipient-status.ts'

export interface StoryFacts {
  readonly story: MessageDetails
  readonly records: DestinationRecords
  readonly policies: DestinationPolicies
  readonly wall: WallView
}

/** The live recipient with the earliest next attempt. */
function firstToBeTried({ story, records }: Pick<StoryFacts, 'story' | 'records'>): Recipient | undefined {
  const at = (recipient: Recipient) => nextAttemptAt(recipient, story.queue, records) ?? Infinity
  return story.recipients.filter(isLive).toSorted((a, b) => at(a) - at(b) || a.id - b.id)[0]
}

/** Builds the object of `queue show --json`. */
export function storyJson(facts: StoryFacts) {
  const { story, records, policies, wall } = facts
  const addresses = new Map(story.recipients.map(({ id, address }) => [id, address]))
  const first = firstToBeTried(facts)
  const waits: WaitsFor = first === undefined ? 'nothing' : waitsFor(first, story.queue, records)
  return {
    ...messageJson(story, records, wall),
    history: story.history.map((attempt) => attemptJson(attempt, addresses.get(attempt.recipient) ?? '', wall)),
    rule:
      first === undefined ? null : ruleFor({ recipient: first, story, waits, next: nextAttemptAt(first, story.queue, records), policies }),
    waits_for: waits,
  }
}

export type StoryJson = ReturnType<typeof storyJson>
