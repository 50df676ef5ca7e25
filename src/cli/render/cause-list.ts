/** Causes of waiting mail as text: summed over destinations, and one block per destination. */
import type { WallTime } from '../../system/clock.ts'
import type { DestinationName } from '../../mail/message.ts'
import { causeTitle, destinationsText, type CauseJson, type SummedCauseJson } from '../../resources/cause-json.ts'
import { stateText } from '../../presentation/destination-state.ts'
import type { HealthJson } from '../../resources/destination-json.ts'
import { painted, roleOfDestination, type Display } from './style.ts'
import { clipped, grouped, instantOf, maskControls, plural, relative } from '../../presentation/text.ts'
import { cutMiddle } from './table.ts'
import { wrapped } from './wrapping.ts'

const COUNT_WIDTH = 9
const INDENT = ' '.repeat(COUNT_WIDTH + 2)
const LEAST_PLACE_WIDTH = 20

interface CauseListFacts {
  readonly now: WallTime
  readonly display: Display
  /** By destination; open when absent. */
  readonly states: ReadonlyMap<DestinationName, HealthJson>
  /** Maximum number of causes shown per destination. */
  readonly limit: number
}

type Cause = CauseJson | SummedCauseJson

const total = (those: readonly Cause[]): number => those.reduce((sum, { recipients }) => sum + recipients, 0)

/** The causes beyond the limit in one line, as a list: empty for none. */
function furtherLines(causes: readonly Cause[], limit: number): readonly string[] {
  const hidden = causes.slice(limit)
  return hidden.length === 0 ? [] : [`${INDENT}${plural(hidden.length, 'further cause')}, ${plural(total(hidden), 'recipient')} (--limit)`]
}

const lines = (text: string, width: number): readonly string[] => wrapped(maskControls(text), width - INDENT.length)

const optionLines = ({ options, filter_is_exact: isExact }: Cause): readonly string[] => [
  // Not wrapped: the line is pasted as it is.
  ...(options === null ? [] : [`${INDENT}${options}`]),
  ...(isExact ? [] : [`${INDENT}(these options also select other mail)`]),
]

const hintLines = ({ hint }: Cause, width: number): readonly string[] =>
  hint === null ? [] : lines(`to do: ${hint}`, width).map((line) => `${INDENT}${line}`)

function causeBlock(one: CauseJson, { now, display: { width } }: CauseListFacts): readonly string[] {
  const { recipients, since, last_time: last, example } = one
  const [head = '', ...rest] = lines(`${one.on_hold ? 'on hold: ' : ''}${causeTitle(one)}`, width)
  const at = (seconds: number): string => relative(instantOf(seconds), now)
  return [
    `${grouped(recipients).padStart(COUNT_WIDTH)}  ${head}`,
    ...rest.map((line) => `${INDENT}${line}`),
    ...hintLines(one, width),
    ...(since === null || last === null ? [] : lines(`since ${at(since)}, last ${at(last)}`, width).map((line) => `${INDENT}${line}`)),
    ...(example === null
      ? []
      : [`${INDENT}${clipped(maskControls(`e.g. ${example.queue_id} ${example.recipient}`), width - INDENT.length)}`]),
    ...optionLines(one),
  ]
}

/** The list for people, destinations with the most recipients first. */
export function causeList(causes: readonly CauseJson[], facts: CauseListFacts): string {
  const blocks = [...Map.groupBy(causes, ({ destination }) => destination)]
    .toSorted(([, a], [, b]) => total(b) - total(a))
    .map(([destination, those]) => {
      const shown = facts.states.get(destination)
      const held = total(those.filter(({ on_hold: isHeld }) => isHeld))
      const counts = `${plural(total(those) - held, 'recipient')}${held === 0 ? '' : `, ${grouped(held)} on hold`}`
      const head = `${destination}: ${counts}, ${shown === undefined ? 'open' : stateText(shown, facts.now)}`
      return [
        ...wrapped(maskControls(head), facts.display.width).map((line) =>
          painted(line, roleOfDestination[shown?.state ?? 'open'], facts.display),
        ),
        ...those.slice(0, facts.limit).flatMap((cause) => causeBlock(cause, facts)),
        ...furtherLines(those, facts.limit),
      ]
    })
  return blocks.map((block) => `${block.join('\n')}\n`).join('\n')
}

const placeWidth = ({ width }: Display): number => Math.max(LEAST_PLACE_WIDTH, Math.floor(width / 4))

function sumLines(one: SummedCauseJson, display: Display): readonly string[] {
  const { width } = display
  const place = cutMiddle(maskControls(destinationsText(one)), placeWidth(display)).padEnd(placeWidth(display))
  const head = `${grouped(one.recipients).padStart(COUNT_WIDTH)}  ${place}  `
  return [`${head}${clipped(maskControls(causeTitle(one)), width - head.length)}`, ...hintLines(one, width), ...optionLines(one)]
}

/** The causes summed over destinations: mail that waits, then mail on hold. */
export function causeSums(causes: readonly SummedCauseJson[], { display, limit }: Pick<CauseListFacts, 'display' | 'limit'>): string {
  const table = (heading: string, those: readonly SummedCauseJson[]): readonly string[] => {
    if (those.length === 0) return []
    const title = `${heading.padStart(COUNT_WIDTH)}  ${'DESTINATION'.padEnd(placeWidth(display))}  CAUSE`
    return [
      painted(title, 'heading', display),
      ...those.slice(0, limit).flatMap((one) => sumLines(one, display)),
      ...furtherLines(those, limit),
    ]
  }
  const held = causes.filter(({ on_hold: isHeld }) => isHeld)
  const waiting = causes.filter(({ on_hold: isHeld }) => !isHeld)
  const foot = ['More, by destination: deferd queue causes --details, or --destination NAME']
  const space = waiting.length === 0 || held.length === 0 ? [] : ['']
  return [...table('WAITING', waiting), ...space, ...table('ON HOLD', held), ...foot].map((line) => `${line}\n`).join('')
}
