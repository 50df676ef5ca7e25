/** Sentences about nodes that have failed, for commands and the page. */
import { plural, span } from '../presentation/text.ts'
import { SECOND } from '../system/clock.ts'
import type { NodeJson } from './node-json.ts'

interface NodeTrouble {
  readonly text: string
  /** Commands or steps for the operator. */
  readonly hint: string
}

/** Nodes that drain while none is active: they hand their destinations to no other node, and the relay stands still. Empty otherwise. */
export const drainedAll = <N extends Pick<NodeJson, 'state'>>(nodes: readonly N[]): readonly N[] =>
  nodes.some(({ state }) => state === 'active') ? [] : nodes.filter(({ state }) => state === 'draining')

/** Null while a node is active, and when none drains. */
export function drainTrouble(nodes: readonly Pick<NodeJson, 'name' | 'state'>[]): NodeTrouble | null {
  const names = drainedAll(nodes).map(({ name }) => name)
  const [first] = names
  if (first === undefined) return null
  const text = `no mail is accepted or delivered: ${names.join(', ')} ${names.length === 1 ? 'drains' : 'drain'}, and no other node is active`
  return { text, hint: `undrain one: deferd node undrain ${first}` }
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
