/** The last warnings and errors of the log of all nodes. */
import { patternMatcher } from '../patterns/filter-pattern.ts'
import { logRecordJson, summedCounts, type LogPageJson, type NodeLine } from '../resources/log-json.ts'
import type { WallTime } from '../system/clock.ts'
import { inOrder, type KeptLevel } from '../telemetry/recent-log.ts'
import { cursorPosition, cursorText } from './cursor.ts'
import { asOf, type QueueView } from './queue-view.ts'

interface LogQuery {
  readonly level?: KeptLevel | undefined
  readonly event?: string | undefined
  readonly queue_id?: string | undefined
  readonly destination?: string | undefined
  readonly text?: string | undefined
  /** Pattern of the name of a node. */
  readonly node?: string | undefined
  readonly logged_after?: WallTime | undefined
  readonly logged_before?: WallTime | undefined
}

type Position = Pick<NodeLine, 'at' | 'seq' | 'node'>

const order = (a: Position, b: Position): number => inOrder(a, b) || a.node - b.node

function positionOf(before: string | undefined, conditions: unknown): Position | null {
  if (before === undefined) return null
  const [at, seq, node] = cursorPosition(before, conditions)
  return { at: at ?? 0, seq: seq ?? 0, node: node ?? 0 }
}

/** One page, the last record first. */
export async function logPage(
  view: QueueView,
  { limit, before, ...query }: LogQuery & { readonly limit: number; readonly before?: string | undefined },
): Promise<LogPageJson> {
  const conditions = ['log', query]
  const position = positionOf(before, conditions)
  const { level = 'warn', event = null, queue_id: queueId = null, destination = null, text = null, node = null } = query
  const filter = { level, event, queueId, destination, text, after: query.logged_after ?? null, before: query.logged_before ?? null }
  // Of each node: the page, the line at the position, and one line more, which tells that there is another page.
  const answers = await view.live.log({ filter, through: position, limit: limit + 2 })
  const isAsked = node === null ? () => true : patternMatcher(node)
  const asked = answers.filter(({ name }) => isAsked(name ?? ''))
  const found = asked
    .flatMap(({ node: id, name, found: one }): readonly NodeLine[] => (one?.lines ?? []).map((line) => ({ ...line, node: id, name })))
    .filter((line) => position === null || order(line, position) < 0)
    .toSorted((a, b) => order(b, a))
  const shown = found.slice(0, limit)
  const last = found.length > limit ? shown.at(-1) : undefined
  return {
    records: shown.map(logRecordJson),
    counts: summedCounts(asked.flatMap(({ found: one }) => one?.counts ?? [])),
    nodes: asked.map(({ name, found: one }) => ({ name, since: one === null ? null : one.since / 1_000 })),
    next: last === undefined ? null : cursorText([last.at, last.seq, last.node], conditions),
    as_of: asOf(view),
  }
}
