/** The status of a queue as one screen. */
import { QUEUE_NAMES } from '../../mail/message.ts'
import type { QueueStatus, StatusDestination } from '../../queue/queue-status.ts'
import type { TokenState } from '../../oauth/access-tokens.ts'
import type { SubscriptionView } from '../../store/outbox/subscription.ts'
import { TRAFFIC_KINDS, type Traffic } from '../../store/traffic.ts'
import type { Clock, QueueTime } from '../../system/clock.ts'
import { hintOf } from '../../mail/login-refusal.ts'
import { slotsText } from '../../presentation/delivery-slots.ts'
import { healthOf, rateText, siteReason, stateText } from '../../presentation/destination-state.ts'
import { painted, roleOfDestination, type Display } from './style.ts'
import { cutMiddle } from './table.ts'
import { clipped, grouped, localTime, maskControls, relative, span, triesText } from '../../presentation/text.ts'
import { wrapped } from './wrapping.ts'

const MOST_DESTINATIONS = 10
const NAME_WIDTH = 28
const COUNT_WIDTH = 11

const cells = (name: string, ...values: readonly string[]): string =>
  `${name.padEnd(12)}${values.map((value) => value.padStart(COUNT_WIDTH + 2)).join('')}`

const rate = (perSecond: number): string => `${perSecond < 9.95 ? perSecond.toFixed(1) : grouped(Math.round(perSecond))}/s`

function trafficTable({ running, lastHour }: QueueStatus): readonly string[] {
  const kinds = TRAFFIC_KINDS.filter((kind) => kind !== 'deleted')
  if (running === null) return [cells('RECIPIENTS', 'last hour'), ...kinds.map((kind) => cells(kind, grouped(lastHour[kind])))]
  const { last10s, last5min } = running.rates
  const row = (kind: keyof Traffic) => cells(kind, rate(last10s[kind]), rate(last5min[kind]), grouped(lastHour[kind]))
  return [cells('RECIPIENTS', 'last 10 s', 'last 5 min', 'last hour'), ...kinds.map(row)]
}

function queueTable({ queues, trash, at }: QueueStatus): readonly string[] {
  const row = (name: string, messages: number, recipients: number, oldest: string) =>
    cells(name, grouped(messages), grouped(recipients), oldest)
  const counted = QUEUE_NAMES.map((name) => {
    const count = queues.find(({ queue }) => queue === name)
    return count === undefined ? row(name, 0, 0, '-') : row(name, count.messages, count.recipients, span(at - count.oldestArrival))
  })
  return [cells('QUEUE', 'messages', 'recipients', 'oldest'), ...counted, row('trash', trash.messages, trash.recipients, '-')]
}

const OUTCOMES = 'outcomes: '

/** `++-x`: the last outcomes, delivered, deferred or failed. */
const outcomesText = ({ recent }: StatusDestination): string =>
  (recent?.outcomes ?? []).map((outcome) => (outcome === 'delivered' ? '+' : outcome === 'deferred' ? '-' : 'x')).join('')

function destinationLines(one: StatusDestination, now: QueueTime, display: Display): readonly string[] {
  const { width } = display
  const { live } = one
  const { siteStatus, state } = healthOf(one)
  const flight = live === undefined ? '' : `, ${live.inFlight}/${live.window} in flight${rateText(live)}`
  const name = maskControls(one.destination)
  const head = `${cutMiddle(name, NAME_WIDTH).padEnd(NAME_WIDTH)}${grouped(one.waiting).padStart(COUNT_WIDTH)}`
  const indent = ' '.repeat(NAME_WIDTH + COUNT_WIDTH + 2)
  const why = state === 'suspended' || siteStatus === null ? '' : `: ${siteReason(siteStatus)}`
  const [first = '', ...rest] = wrapped(maskControls(`${stateText(one, now)}${flight}${why}`), width - indent.length)
  const outcomes = outcomesText(one)
  const hint = state === 'suspended' ? null : hintOf(siteStatus)
  return [
    painted(`${head}  ${first}`, state === 'open' ? null : roleOfDestination[state], display),
    ...[...rest, ...(hint === null ? [] : wrapped(`to do: ${hint}`, width - indent.length))].map((line) => `${indent}${line}`),
    ...(outcomes === '' ? [] : [`${indent}${OUTCOMES}${outcomes.slice(-(width - indent.length - OUTCOMES.length))}`]),
  ]
}

function destinationTable(heading: string, those: readonly StatusDestination[], now: QueueTime, display: Display): readonly string[] {
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

function balanceLines({ balance }: QueueStatus, width: number): readonly string[] {
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
function subscriptionLines(
  { name, settings, progress, behind, oldestAt, parked, lost }: SubscriptionView,
  now: QueueTime,
  { width }: Display,
) {
  const { state, why, tries, dueAt, lastAnswer } = progress
  const missing = lost.reduce((sum, { count }) => sum + count, 0)
  const facts = [
    ...(settings.to === '' ? ['read by programs'] : []),
    ...(state === 'disabled' ? [`disabled: ${why ?? ''}: deferd webhook replay ${name} enables it`] : []),
    ...(behind > 0 && oldestAt !== null && settings.to !== '' ? [`oldest ${span(now - oldestAt)}`] : []),
    ...(parked === 0 ? [] : [`${grouped(parked)} parked: deferd webhook replay ${name} --parked`]),
    ...(missing === 0 ? [] : [`${grouped(missing)} lost`]),
    ...(tries === 0 || state === 'disabled' ? [] : [triesText(tries, dueAt, now)]),
    ...(state === 'disabled'
      ? []
      : [lastAnswer === null ? 'no answer yet' : `last answer ${relative(lastAnswer.at, now)}: ${lastAnswer.text}`]),
  ]
  const waiting = settings.to === '' ? '-' : grouped(behind)
  const head = `${cutMiddle(maskControls(name), NAME_WIDTH).padEnd(NAME_WIDTH)}${waiting.padStart(COUNT_WIDTH)}`
  const indent = ' '.repeat(NAME_WIDTH + COUNT_WIDTH + 2)
  const [first = '', ...rest] = wrapped(maskControls(facts.join('; ')), width - indent.length)
  return [`${head}  ${first}`, ...rest.map((line) => `${indent}${line}`)]
}

function subscriptionTable({ subscriptions, at }: QueueStatus, display: Display): readonly string[] {
  if (subscriptions.length === 0) return []
  const title = `${'EVENTS'.padEnd(NAME_WIDTH)}${'waiting'.padStart(COUNT_WIDTH)}`
  const shown = subscriptions.slice(0, MOST_DESTINATIONS)
  const more =
    subscriptions.length > MOST_DESTINATIONS ? [`and ${grouped(subscriptions.length - MOST_DESTINATIONS)} more: deferd webhook list`] : []
  return ['', painted(title, 'heading', display), ...shown.flatMap((one) => subscriptionLines(one, at, display)), ...more]
}

/** `token of m365 for 42 min`, or why there is none. */
function tokenLines({ name, user, left, problem }: TokenState, { width }: Display): readonly string[] {
  const whose = user === '' ? name : `${name}, ${user}`
  const text = left === null || left === 0 ? `no token of ${whose}` : `token of ${whose} for ${span(left)}`
  const [first = '', ...rest] = wrapped(maskControls(problem === null ? text : `${text}: ${problem}`), width - 2)
  return [first, ...rest.map((line) => `  ${line}`)]
}

function tokenTable({ tokens }: QueueStatus, display: Display): readonly string[] {
  if (tokens.length === 0) return []
  const lines = tokens.slice(0, MOST_DESTINATIONS).flatMap((one) => {
    const shown = tokenLines(one, display)
    return one.failedSince === null ? shown : shown.map((line) => painted(line, roleOfDestination.dead, display))
  })
  const more = tokens.length > MOST_DESTINATIONS ? [`and ${grouped(tokens.length - MOST_DESTINATIONS)} more: deferd oauth list`] : []
  return ['', painted('ACCESS TOKENS', 'heading', display), ...lines, ...more]
}

/** The screen, of at most the width of the display. */
export function statusScreen(
  status: QueueStatus,
  { name, clock, display }: { readonly name: string; readonly clock: Clock; readonly display: Display },
): string {
  const { running, closed, largest, at } = status
  const state = running === null ? 'no daemon runs' : `deferd ${running.version} is running`
  const { width } = display
  const open = largest.filter(({ destination }) => !closed.some((one) => one.destination === destination))
  const lines = [
    clipped(maskControls(`${name}: ${state}, ${localTime(clock.wall.of(at), clock)}`), width),
    ...(running?.deliveries === undefined ? [] : wrapped(slotsText(running.deliveries), width)),
    '',
    ...headed(trafficTable(status), display),
    '',
    ...headed(queueTable(status), display),
    ...destinationTable('DEAD AND SUSPENDED', closed, at, display),
    ...destinationTable(closed.length === 0 ? 'DESTINATIONS' : 'OTHER DESTINATIONS', open, at, display),
    ...subscriptionTable(status, display),
    ...tokenTable(status, display),
    ...balanceLines(status, width),
  ]
  return `${lines.join('\n')}\n`
}
