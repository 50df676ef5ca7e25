/** Sentences about nodes that have failed, for commands and the page. */
import { plural, span } from '../presentation/text.ts'
import { SECOND } from '../system/clock.ts'
import type { NodeJson } from './node-json.ts'

interface NodeTrouble {
  readonly text: string
  /** Commands or steps for the operator. */
  readonly hint: string
}

/** Null for a node that has not failed. */
export function nodeTrouble({ name, state, beat_age: age, lost }: NodeJson): NodeTrouble | null {
  const since = `no sign of life for ${span(age * SECOND)}`
  if (state === 'silent')
    return { text: `node ${name} is silent: ${since}; other nodes take its mail over`, hint: 'look at its machine and its log' }
  if (lost === null) return null
  const taken = `${plural(lost.shards, 'shard')} and ${plural(lost.recipients, 'recipient')}`
  return {
    text: `node ${name} is lost: ${since}; ${lost.taken_over_by} has taken its ${taken} over`,
    hint: `start its daemon, or remove it: deferd node forget ${name}`,
  }
}
