/** The status of a queue as one screen. */
import { QUEUE_NAMES } from '../../mail/message.ts'
import type { StatusDestinationJson } from '../../resources/destination-json.ts'
import { drainTrouble, nodeTrouble } from '../../resources/node-trouble.ts'
import type { NodeJson } from '../../resources/node-json.ts'
import type { ScheduleJson } from '../../resources/schedule-json.ts'
import type { StatusJson } from '../../resources/status-json.ts'
import type { SubscriptionJson } from '../../resources/subscription-json.ts'
import { TRAFFIC_KINDS, type Traffic } from '../../store/counts/traffic.ts'
import { slotsText } from '../../presentation/delivery-slots.ts'
import { SECOND, type Clock, type WallTime } from '../../system/clock.ts'
import { rateText, stateText } from '../../presentation/destination-state.ts'
import { painted, roleOfDestination, type Display } from './style.ts'
import { cutMiddle } from './table.ts'
import { clipped, grouped, instantOf, localTime, maskControls, rate, relative, span, triesText } from '../../presentation/text.ts'
import { hanging, wrapped } from './wrapping.ts'

/** Maximum number of entries of a list. */
const MOST_SHOWN = 10
const INDENT = 2
const NAME_WIDTH = 28
const COUNT_WIDTH = 11

const cells = (name: string, ...values: readonly string[]): string =>
  `${name.padEnd(12)}${values.map((value) => value.padStart(COUNT_WIDTH + 2)).join('')}`

function trafficTable({ rates, last_hour: lastHour }: StatusJson): readonly string[] {
  const kinds = TRAFFIC_KINDS.filter((kind) => kind !== 'deleted')
  if (rates === null) return [cells('RECIPIENTS', 'last hour'), ...kinds.map((kind) => cells(kind, grouped(lastHour[kind])))]
  const { last_10s: last10s, last_5min: last5min } = rates
  const row = (kind: keyof Traffic) => cells(kind, `${rate(last10s[kind])}/s`, `${rate(last5min[kind])}/s`, grouped(lastHour[kind]))
  return [cells('RECIPIENTS', 'last 10 s', 'last 5 min', 'last hour'), ...kinds.map(row)]
}

function queueTable({ queues, trash, time }: StatusJson): readonly string[] {
  const row = (name: string, messages: number, recipients: number, oldest: string) =>
    cells(name, grouped(messages), grouped(recipients), oldest)
  const counted = QUEUE_NAMES.map((name) => {
    const count = queues.find((one) => one.queue_name === name)
    if (count === undefined) return row(name, 0, 0, '-')
    return row(name, count.messages, count.recipients, span(instantOf(time - count.oldest_arrival_time)))
  })
  return [cells('QUEUE', 'messages', 'recipients', 'oldest'), ...counted, row('trash', trash.messages, trash.recipients, '-')]
}

const OUTCOMES = 'outcomes: '

/** `++-x`: the last outcomes, delivered, deferred or failed. */
const outcomesText = ({ last_outcomes: outcomes }: StatusDestinationJson): string =>
  (outcomes ?? []).map((outcome) => (outcome === 'delivered' ? '+' : outcome === 'deferred' ? '-' : 'x')).join('')

function destinationLines(one: StatusDestinationJson, now: WallTime, display: Display): readonly string[] {
  const { width } = display
  const { state, window, in_flight: inFlight } = one
  const flight = window === null ? '' : `, ${inFlight}/${window} in flight${rateText(one.message_rate)}`
  const name = maskControls(one.destination)
  const head = `${cutMiddle(name, NAME_WIDTH).padEnd(NAME_WIDTH)}${grouped(one.waiting).padStart(COUNT_WIDTH)}`
  const indent = ' '.repeat(NAME_WIDTH + COUNT_WIDTH + 2)
  const why = state === 'suspended' || one.site_reason === null ? '' : `: ${one.site_reason}`
  const [first = '', ...rest] = wrapped(maskControls(`${stateText(one, now)}${flight}${why}`), width - indent.length)
  const outcomes = outcomesText(one)
  const hint = state === 'suspended' ? null : one.hint
  return [
    painted(`${head}  ${first}`, state === 'open' ? null : roleOfDestination[state], display),
    ...[...rest, ...(hint === null ? [] : wrapped(`to do: ${hint}`, width - indent.length))].map((line) => `${indent}${line}`),
    ...(outcomes === '' ? [] : [`${indent}${OUTCOMES}${outcomes.slice(-(width - indent.length - OUTCOMES.length))}`]),
  ]
}

/** Destinations, or others, of which a screen shows as many as fit. */
interface ScreenList {
  readonly heading: string
  /** The lines of each entry. */
  readonly entries: readonly (readonly string[])[]
  /** Number of entries. */
  readonly total: number
  /** The command that lists all. */
  readonly command: string
}

const listOf = (heading: string, command: string, all: readonly (readonly string[])[]): ScreenList => ({
  heading,
  command,
  entries: all.slice(0, MOST_SHOWN),
  total: all.length,
})

const titleOf = (heading: string): string => `${heading.padEnd(NAME_WIDTH)}${'waiting'.padStart(COUNT_WIDTH)}`

/** A sentence in one line. The number at its end stays. */
function inOneLine(text: string, width: number): string {
  const end = text.slice(text.lastIndexOf(' — '))
  return text.length <= width ? text : `${clipped(text.slice(0, -end.length), width - end.length)}${end}`
}

/** The destinations that need attention, those with one reason as one entry. */
function troubleEntries({ troubles }: StatusJson, display: Display, isShort: boolean): readonly (readonly string[])[] {
  const { width } = display
  return troubles.map(({ kind, text, hint }) => {
    const shown = maskControls(text)
    const lines = isShort || shown.length <= width ? [inOneLine(shown, width)] : hanging('', shown, { width, indent: INDENT })
    const advice = hint === null ? [] : hanging(' '.repeat(INDENT), `to do: ${hint}`, { width, indent: INDENT })
    return [...lines.map((line) => painted(line, kind === 'suspended' ? 'stopped' : 'bad', display)), ...advice]
  })
}

/** The limits of the queue, those that refuse mail in colour, and quotas that are used up. */
const limitEntries = ({ limits, quotas }: StatusJson, display: Display): readonly (readonly string[])[] =>
  [...limits, ...quotas.map(({ text }) => ({ text, refuses: true }))].map(({ text, refuses }) => {
    const lines = hanging('', maskControls(text), { width: display.width, indent: INDENT })
    return !refuses ? lines : lines.map((line) => painted(line, 'bad', display))
  })

function balanceLines({ balance }: StatusJson, width: number): readonly string[] {
  const { accepted, delivered, returned, deleted, waiting, difference } = balance
  const terms = [
    `delivered ${grouped(delivered)}`,
    `returned ${grouped(returned)}`,
    `deleted ${grouped(deleted)}`,
    `waiting ${grouped(waiting)}`,
  ]
  const text = `BALANCE  accepted ${grouped(accepted)} = ${terms.join(' + ')}`
  const warning =
    difference === 0 ? [] : [`warning: ${grouped(Math.abs(difference))} recipients are ${difference > 0 ? 'missing' : 'counted twice'}`]
  return ['', ...wrapped(text, width), ...warning.flatMap((line) => wrapped(line, width))]
}

/** A subscription on one line, and on further lines the reason why the target does not take its events. */
function subscriptionLines(one: SubscriptionJson, now: WallTime, { width }: Display) {
  const { name, to, state, why, tries, behind, parked, lost, last_answer: answer } = one
  const { oldest_time: oldest, next_try_time: next, last_answer_time: answered } = one
  const facts = [
    ...(to === '' ? ['read by programs'] : []),
    ...(state === 'disabled' ? [`disabled: ${why ?? ''}: deferd webhook replay ${name} enables it`] : []),
    ...(behind > 0 && oldest !== null && to !== '' ? [`oldest ${span(now - instantOf(oldest))}`] : []),
    ...(parked === 0 ? [] : [`${grouped(parked)} parked: deferd webhook replay ${name} --parked`]),
    ...(lost === 0 ? [] : [`${grouped(lost)} lost`]),
    ...(tries === 0 || state === 'disabled' ? [] : [triesText(tries, next === null ? null : instantOf(next), now)]),
    ...(state === 'disabled'
      ? []
      : [answer === null ? 'no answer yet' : `last answer ${relative(instantOf(answered ?? 0), now)}: ${answer}`]),
  ]
  const waiting = to === '' ? '-' : grouped(behind)
  const head = `${cutMiddle(maskControls(name), NAME_WIDTH).padEnd(NAME_WIDTH)}${waiting.padStart(COUNT_WIDTH)}`
  const indent = ' '.repeat(NAME_WIDTH + COUNT_WIDTH + 2)
  const [first = '', ...rest] = wrapped(maskControls(facts.join('; ')), width - indent.length)
  return [`${head}  ${first}`, ...rest.map((line) => `${indent}${line}`)]
}

type TokenJson = StatusJson['oauth'][number]

/** `token of m365 for 42 min`, or why there is none. */
function tokenLines({ oauth: name, user, left, problem }: TokenJson, { width }: Display): readonly string[] {
  const whose = user === null ? name : `${name}, ${user}`
  const text = left === null || left === 0 ? `no token of ${whose}` : `token of ${whose} for ${span(left * SECOND)}`
  const [first = '', ...rest] = wrapped(maskControls(problem === null ? text : `${text}: ${problem}`), width - 2)
  return [first, ...rest.map((line) => `  ${line}`)]
}

/** The nodes that have failed, and that none is active. */
const nodeEntries = (nodes: readonly NodeJson[], display: Display): readonly (readonly string[])[] =>
  [drainTrouble(nodes), ...nodes.map(nodeTrouble)].flatMap((trouble) => {
    if (trouble === null) return []
    const { width } = display
    const lines = hanging('', maskControls(trouble.text), { width, indent: INDENT })
    const advice = hanging(' '.repeat(INDENT), `to do: ${maskControls(trouble.hint)}`, { width, indent: INDENT })
    return [[...lines.map((line) => painted(line, 'bad', display)), ...advice]]
  })

interface Shape extends Pick<ScreenFacts, 'display' | 'nodes'> {
  /** True for a screen with few lines. */
  readonly isShort: boolean
}

function listsOf(status: StatusJson, { nodes, display, isShort }: Shape): readonly ScreenList[] {
  const {
    closed_destinations: closed,
    refusing_destinations: refusing,
    largest_destinations: largest,
    subscriptions,
    schedules,
    oauth: tokens,
  } = status
  const at = instantOf(status.time)
  const troubled = new Set([...closed, ...refusing].map(({ destination }) => destination))
  const others = largest.filter(({ destination }) => !troubled.has(destination)).map((one) => destinationLines(one, at, display))
  const tokenEntries = tokens.map((one) => {
    const shown = tokenLines(one, display)
    return !one.failing ? shown : shown.map((line) => painted(line, roleOfDestination.dead, display))
  })
  const scheduleEntries = schedules.map((one) => {
    const shown = scheduleLines(one, at, display)
    return one.last_run?.result === 'failed' ? shown.map((line) => painted(line, roleOfDestination.dead, display)) : shown
  })
  const events = subscriptions.map((one) => subscriptionLines(one, at, display))
  return [
    listOf('NEEDS ATTENTION', 'deferd destination list', [...nodeEntries(nodes, display), ...troubleEntries(status, display, isShort)]),
    listOf('LIMITS', 'deferd status --json', limitEntries(status, display)),
    listOf(titleOf(troubled.size === 0 ? 'DESTINATIONS' : 'OTHER DESTINATIONS'), 'deferd destination list', others),
    listOf(titleOf('EVENTS'), 'deferd webhook list', events),
    listOf('ACCESS TOKENS', 'deferd oauth list', tokenEntries),
    listOf(`${'SCHEDULES'.padEnd(NAME_WIDTH)}next run`, 'deferd schedule list', scheduleEntries),
  ]
    .filter(({ total }) => total > 0)
    .map((list) => ({ ...list, entries: list.entries.map((lines) => (isShort ? lines.slice(0, 1) : lines)) }))
}

/** A schedule on one line: its next run, and the end of its last one. */
function scheduleLines({ schedule, do: work, next_time: next, last_run: last }: ScheduleJson, at: WallTime, { width }: Display) {
  const name = cutMiddle(maskControls(schedule), NAME_WIDTH - 2).padEnd(NAME_WIDTH)
  const due = (next === null ? 'never' : relative(instantOf(next), at)).padEnd(COUNT_WIDTH)
  const ended = last === null ? 'no run yet' : `${last.result} ${relative(instantOf(last.end_time ?? last.begin_time), at)}`
  const indent = NAME_WIDTH + COUNT_WIDTH + 2
  const text = `${work}; ${ended}${last === null || last.text === '' ? '' : `: ${last.text}`}`
  const [first = '', ...rest] = wrapped(maskControls(text), width - indent)
  return [`${name}${due}  ${first}`, ...rest.map((line) => `${' '.repeat(indent)}${line}`)]
}

/** A list with its heading, of at most `room` lines; empty when it has no room for an entry. */
function listLines({ heading, entries, total, command }: ScreenList, room: number, display: Display): readonly string[] {
  const shown: string[] = []
  let left = total
  for (const [n, lines] of entries.entries()) {
    const isLast = n === total - 1
    if (1 + shown.length + lines.length + (isLast ? 0 : 1) > room) break
    shown.push(...lines)
    left--
  }
  const more = left === 0 ? [] : [`… and ${grouped(left)} more: ${command}`]
  return shown.length === 0 ? [] : [painted(heading, 'heading', display), ...shown, ...more]
}

/** Lines that a list needs to show one entry of one line, and that there are more. */
const LEAST_LINES = 3

/** The lists in `room` lines. An earlier list leaves a later one the room for an entry. */
function fitted(lists: readonly ScreenList[], room: number, display: Display): readonly string[] {
  let left = room
  return lists.flatMap((list, n) => {
    const reserved = (lists.length - 1 - n) * LEAST_LINES
    const lines = listLines(list, left - reserved, display)
    left -= lines.length
    return lines
  })
}

/** On a screen with fewer lines, an entry has one line, and no lines are left blank. */
const LEAST_ROWS = 36

const headed = ([heading = '', ...rows]: readonly string[], display: Display): readonly string[] => [
  painted(heading, 'heading', display),
  ...rows,
]

const HINT = 'Causes: deferd queue causes   Senders: deferd queue shape --senders --addresses'

interface ScreenFacts {
  readonly name: string
  readonly clock: Pick<Clock, 'zone'>
  readonly display: Display
  /** Lines of the screen; null for any number. */
  readonly rows: number | null
  /** Nodes that share the queue. */
  readonly nodes: readonly NodeJson[]
}

/** The screen, of at most the width of the display, and of at most `rows` lines but for its first tables. */
export function statusScreen(status: StatusJson, { name, clock, display, rows, nodes }: ScreenFacts): string {
  const { version } = status
  const state = version === null ? 'no daemon runs' : `deferd ${version} is running`
  const { width } = display
  const isShort = rows !== null && rows < LEAST_ROWS
  const space = isShort ? [] : ['']
  const head = [
    clipped(maskControls(`${name}: ${state}, ${localTime(instantOf(status.time), clock)}`), width),
    ...(status.deliveries === null ? [] : wrapped(slotsText(status.deliveries), width)),
    ...space,
    ...headed(trafficTable(status), display),
    ...space,
    ...headed(queueTable(status), display),
  ]
  const lists = listsOf(status, { nodes, display, isShort })
  const foot = [...(status.largest_destinations.length === 0 ? [] : ['', ...wrapped(HINT, width)]), ...balanceLines(status, width)]
  if (rows === null) return textOf([...head, ...lists.flatMap((list) => ['', ...listLines(list, Infinity, display)]), ...foot])
  const shown = [...head, ...fitted(lists, rows - head.length, display)]
  return textOf(shown.length + foot.length > rows ? shown : [...shown, ...foot])
}

const textOf = (lines: readonly string[]): string => `${lines.join('\n')}\n`
