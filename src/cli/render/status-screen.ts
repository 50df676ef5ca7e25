/** The status of a queue as one screen. */
import { QUEUE_NAMES } from '../../mail/message.ts'
import type { StatusDestinationJson } from '../../resources/destination-json.ts'
import type { ScheduleJson } from '../../resources/schedule-json.ts'
import type { StatusJson } from '../../resources/status-json.ts'
import type { SubscriptionJson } from '../../resources/subscription-json.ts'
import { TRAFFIC_KINDS, type Traffic } from '../../store/traffic.ts'
import { slotsText } from '../../presentation/delivery-slots.ts'
import { SECOND, type Clock, type WallTime } from '../../system/clock.ts'
import { rateText, stateText } from '../../presentation/destination-state.ts'
import { painted, roleOfDestination, type Display } from './style.ts'
import { cutMiddle } from './table.ts'
import { clipped, grouped, instantOf, localTime, maskControls, relative, span, triesText } from '../../presentation/text.ts'
import { wrapped } from './wrapping.ts'

const MOST_DESTINATIONS = 10
const NAME_WIDTH = 28
const COUNT_WIDTH = 11

const cells = (name: string, ...values: readonly string[]): string =>
  `${name.padEnd(12)}${values.map((value) => value.padStart(COUNT_WIDTH + 2)).join('')}`

const rate = (perSecond: number): string => `${perSecond < 9.95 ? perSecond.toFixed(1) : grouped(Math.round(perSecond))}/s`

function trafficTable({ rates, last_hour: lastHour }: StatusJson): readonly string[] {
  const kinds = TRAFFIC_KINDS.filter((kind) => kind !== 'deleted')
  if (rates === null) return [cells('RECIPIENTS', 'last hour'), ...kinds.map((kind) => cells(kind, grouped(lastHour[kind])))]
  const { last_10s: last10s, last_5min: last5min } = rates
  const row = (kind: keyof Traffic) => cells(kind, rate(last10s[kind]), rate(last5min[kind]), grouped(lastHour[kind]))
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

function destinationTable(heading: string, those: readonly StatusDestinationJson[], now: WallTime, display: Display): readonly string[] {
  if (those.length === 0) return []
  const more = those.length > MOST_DESTINATIONS ? [`and ${grouped(those.length - MOST_DESTINATIONS)} more: deferd destination list`] : []
  const title = `${heading.padEnd(NAME_WIDTH)}${'waiting'.padStart(COUNT_WIDTH)}`
  return [
    '',
    painted(title, 'heading', display),
    ...those.slice(0, MOST_DESTINATIONS).flatMap((one) => destinationLines(one, now, display)),
    ...more,
  ]
}

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

const headed = ([heading = '', ...rows]: readonly string[], display: Display): readonly string[] => [
  painted(heading, 'heading', display),
  ...rows,
]

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

function subscriptionTable({ subscriptions, time }: StatusJson, display: Display): readonly string[] {
  if (subscriptions.length === 0) return []
  const title = `${'EVENTS'.padEnd(NAME_WIDTH)}${'waiting'.padStart(COUNT_WIDTH)}`
  const shown = subscriptions.slice(0, MOST_DESTINATIONS)
  const more =
    subscriptions.length > MOST_DESTINATIONS ? [`and ${grouped(subscriptions.length - MOST_DESTINATIONS)} more: deferd webhook list`] : []
  return ['', painted(title, 'heading', display), ...shown.flatMap((one) => subscriptionLines(one, instantOf(time), display)), ...more]
}

type TokenJson = StatusJson['oauth'][number]

/** `token of m365 for 42 min`, or why there is none. */
function tokenLines({ oauth: name, user, left, problem }: TokenJson, { width }: Display): readonly string[] {
  const whose = user === null ? name : `${name}, ${user}`
  const text = left === null || left === 0 ? `no token of ${whose}` : `token of ${whose} for ${span(left * SECOND)}`
  const [first = '', ...rest] = wrapped(maskControls(problem === null ? text : `${text}: ${problem}`), width - 2)
  return [first, ...rest.map((line) => `  ${line}`)]
}

function tokenTable({ oauth: tokens }: StatusJson, display: Display): readonly string[] {
  if (tokens.length === 0) return []
  const lines = tokens.slice(0, MOST_DESTINATIONS).flatMap((one) => {
    const shown = tokenLines(one, display)
    return !one.failing ? shown : shown.map((line) => painted(line, roleOfDestination.dead, display))
  })
  const more = tokens.length > MOST_DESTINATIONS ? [`and ${grouped(tokens.length - MOST_DESTINATIONS)} more: deferd oauth list`] : []
  return ['', painted('ACCESS TOKENS', 'heading', display), ...lines, ...more]
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

function scheduleTable({ schedules, time }: StatusJson, display: Display): readonly string[] {
  if (schedules.length === 0) return []
  const title = `${'SCHEDULES'.padEnd(NAME_WIDTH)}${'next run'.padEnd(COUNT_WIDTH)}`
  const lines = schedules.slice(0, MOST_DESTINATIONS).flatMap((one) => {
    const shown = scheduleLines(one, instantOf(time), display)
    return one.last_run?.result === 'failed' ? shown.map((line) => painted(line, roleOfDestination.dead, display)) : shown
  })
  const more =
    schedules.length > MOST_DESTINATIONS ? [`and ${grouped(schedules.length - MOST_DESTINATIONS)} more: deferd schedule list`] : []
  return ['', painted(title.trimEnd(), 'heading', display), ...lines, ...more]
}

/** The screen, of at most the width of the display. */
export function statusScreen(
  status: StatusJson,
  { name, clock, display }: { readonly name: string; readonly clock: Pick<Clock, 'zone'>; readonly display: Display },
): string {
  const { version, closed_destinations: closed, largest_destinations: largest } = status
  const state = version === null ? 'no daemon runs' : `deferd ${version} is running`
  const { width } = display
  const at = instantOf(status.time)
  const open = largest.filter(({ destination }) => !closed.some((one) => one.destination === destination))
  const lines = [
    clipped(maskControls(`${name}: ${state}, ${localTime(at, clock)}`), width),
    ...(status.deliveries === null ? [] : wrapped(slotsText(status.deliveries), width)),
    '',
    ...headed(trafficTable(status), display),
    '',
    ...headed(queueTable(status), display),
    ...destinationTable('DEAD AND SUSPENDED', closed, at, display),
    ...destinationTable(closed.length === 0 ? 'DESTINATIONS' : 'OTHER DESTINATIONS', open, at, display),
    ...subscriptionTable(status, display),
    ...tokenTable(status, display),
    ...scheduleTable(status, display),
    ...balanceLines(status, width),
  ]
  return `${lines.join('\n')}\n`
}
