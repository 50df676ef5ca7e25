/** Causes of waiting mail as text, one block per destination. */
import type { QueueTime } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'
import type { DestinationName } from '../../mail/message.ts'
import type { CauseJson } from '../../resources/cause-json.ts'
import { healthOf, stateText, type KnownDestination } from '../../presentation/destination-state.ts'
import { painted, roleOfDestination, type Display } from './style.ts'
import { clipped, grouped, instantOf, maskControls, plural, relative } from '../../presentation/text.ts'
import { wrapped } from './wrapping.ts'

const COUNT_WIDTH = 9
const INDENT = ' '.repeat(COUNT_WIDTH + 2)

export interface CauseListFacts {
  readonly now: QueueTime
  readonly wall: WallView
  readonly display: Display
  readonly known: (destination: DestinationName) => KnownDestination
  /** Maximum number of causes shown per destination. */
  readonly limit: number
}

const lines = (text: string, width: number): readonly string[] => wrapped(maskControls(text), width - INDENT.length)

function causeBlock(
  { cause, recipients, since, last_time: last, example, hint, ...one }: CauseJson,
  { now, wall, display: { width } }: CauseListFacts,
): readonly string[] {
  const [head = '', ...rest] = lines(cause ?? 'not tried yet, or one of many rare causes', width)
  const at = (seconds: number): string => relative(instantOf(seconds), wall.of(now))
  return [
    `${grouped(recipients).padStart(COUNT_WIDTH)}  ${head}`,
    ...rest.map((line) => `${INDENT}${line}`),
    ...(hint === null ? [] : lines(`to do: ${hint}`, width).map((line) => `${INDENT}${line}`)),
    ...(since === null || last === null ? [] : lines(`since ${at(since)}, last ${at(last)}`, width).map((line) => `${INDENT}${line}`)),
    ...(example === null
      ? []
      : [`${INDENT}${clipped(maskControls(`e.g. ${example.queue_id} ${example.recipient}`), width - INDENT.length)}`]),
    // Not wrapped: the line is pasted as it is.
    ...(one.options === null ? [] : [`${INDENT}${one.options}`]),
    ...(one.filter_is_exact ? [] : [`${INDENT}(this filter also selects other causes of the destination)`]),
  ]
}

/** The list for people, destinations with the most recipients first. */
export function causeList(causes: readonly CauseJson[], facts: CauseListFacts): string {
  const total = (those: readonly CauseJson[]) => those.reduce((sum, { recipients }) => sum + recipients, 0)
  const blocks = [...Map.groupBy(causes, ({ destination }) => destination)]
    .toSorted(([, a], [, b]) => total(b) - total(a))
    .map(([destination, those]) => {
      const hidden = those.slice(facts.limit)
      const more =
        hidden.length === 0 ? [] : [`${INDENT}${plural(hidden.length, 'further cause')}, ${plural(total(hidden), 'recipient')} (--limit)`]
      const known = facts.known(destination)
      const head = `${destination}: ${plural(total(those), 'recipient')}, ${stateText(known, facts.now)}`
      return [
        ...wrapped(maskControls(head), facts.display.width).map((line) =>
          painted(line, roleOfDestination[healthOf(known).state], facts.display),
        ),
        ...those.slice(0, facts.limit).flatMap((cause) => causeBlock(cause, facts)),
        ...more,
      ]
    })
  return blocks.map((block) => `${block.join('\n')}\n`).join('\n')
}
