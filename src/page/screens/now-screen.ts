/** The first screen: rates, queues, conditions that need an operator, the destinations where mail waits, and its ages. */
import type { NowJson } from '../../resources/status-json.ts'
import type { StatusDestinationJson } from '../../resources/destination-json.ts'
import { bar, outcomeStrip } from '../markup/charts.ts'
import { answer, buttonLink, section, type Screen } from '../markup/frame.ts'
import { loggedNotes, otherLimits } from '../../presentation/attention-text.ts'
import { waitingText } from '../../presentation/destination-troubles.ts'
import { html, joined, type Html, type Part } from '../../presentation/html.ts'
import { destinationLink, linkTo, logLink, messageLink } from '../markup/links.ts'
import { hintPart, shapeOf, toneOf } from '../markup/marks.ts'
import { longText, replyPart } from '../markup/reply.ts'
import { table, type Column } from '../markup/html-table.ts'
import { renewed } from '../markup/renewed.ts'
import { LIMITS, nowTables } from './now-tables.ts'
import { nowSentence } from './now-sentence.ts'
import { howOld, queueStrip, flowFigures, type NowFacts } from './now-figures.ts'
import { countingNotice, figuresMissing, untilCounted } from './counting-screen.ts'
import { age, clockText, clockTime, count, distance, instantOf, messages, plural, waits } from '../markup/times.ts'
import { instantText } from '../markup/time-range.ts'
import type { AttentionJson, DestinationTroubleJson } from '../../resources/status-json.ts'
import { subscriptionLink, trouble } from './system/subscription-marks.ts'
import { visiblePattern, type View } from '../markup/view.ts'
import { nextPart, stateCell } from './destinations-screen.ts'
import { breakable, destinationPart } from '../markup/long-words.ts'

/**
 * Troubles with names, by which an open screen finds them again: the destination, or the kind and host of several, with their position among
 * those of the same kind and host.
 */
function named(troubles: readonly DestinationTroubleJson[]): readonly (readonly [name: string, trouble: DestinationTroubleJson])[] {
  const seen = new Map<string, number>()
  return troubles.map((one) => {
    const { destinations, kind, host } = one
    if (destinations === 1) return [`destination ${one.largest_destinations[0] ?? ''}`, one] as const
    const group = `${kind} ${host ?? ''}`
    const position = (seen.get(group) ?? 0) + 1
    seen.set(group, position)
    return [`${group} ${position}`, one] as const
  })
}

/** Destinations with one reason: their only name, or their number with the names of the largest. */
function troubleItem(view: View, name: string, one: DestinationTroubleJson): Html {
  const [only = ''] = one.largest_destinations
  const isOne = one.destinations === 1
  const names = joined(
    one.largest_destinations.map((largest) => destinationPart(view, largest)),
    ', ',
  )
  const more = isOne ? null : html` <span class="faint">${names}${one.destinations > one.largest_destinations.length ? ', …' : null}</span>`
  return attentionItem({
    name,
    mark: shapeOf(one.kind),
    // The number has a place of its own, because the sentence may be cut.
    sentence: html`${longText(one.text.slice(0, -waitingText(one.waiting).length))}${more}${hintPart(one.hint)}`,
    link: isOne ? destinationLink(view, only) : linkTo(view, 'causes'),
    beside: html`<span class="figure">${waits(one.waiting)}</span> ${isOne ? reopening(view, only, one.kind) : null}`,
  })
}

/** Maximum number of sentences about destinations. The others are in the list of all, and counted with these. */
const MOST_SENTENCES = 5

const atLeast = ({ at_least: isAtLeast }: AttentionJson, what: Html): Html => (isAtLeast ? html`at least ${what}` : what)

/** Sentence about a condition, with the list that it is about. */
function conditionOf(view: View, one: AttentionJson, { limits }: Pick<NowJson, 'limits'>): readonly [sentence: Html, link: string] {
  const figure = one.count ?? 0
  switch (one.kind) {
    case 'store-unavailable':
      return [html`Mail is neither accepted nor delivered: ${one.text}`, logLink(view, { event: 'store-unavailable' })]
    case 'nodes-draining':
      return [
        html`Mail is neither accepted nor delivered: no node is active, and ${one.text} ${figure === 1 ? 'drains' : 'drain'}`,
        linkTo(view, 'nodes'),
      ]
    case 'nodes-silent':
      return [html`${plural(figure, 'node')} silent: ${one.text}. Other nodes take the mail over.`, linkTo(view, 'nodes')]
    case 'nodes-lost':
      return [
        html`${plural(figure, 'node')} lost: ${one.text}${one.since === null ? null : html`, ${distance(view, one.since)}`}`,
        linkTo(view, 'nodes'),
      ]
    case 'oauth-failed':
      return [
        html`${plural(figure, 'login')} at next hops without an access token: ${one.text}`,
        linkTo(view, 'messages', { queue: 'deferred' }),
      ]
    case 'schedule-failed': {
      // The text is of that time.
      const at = one.since === null ? '' : ` at ${clockText(view, one.since)}`
      return [longText(`${plural(figure, 'schedule')} failed, the last${at}: ${one.text}`), linkTo(view, 'audit', { action: 'schedule' })]
    }
    case 'limits':
      return [
        html`${one.text}${otherLimits({ found: figure, refusing: limits.filter(({ refuses }) => refuses).length })}`,
        `${linkTo(view, '')}#${LIMITS}`,
      ]
    case 'listings-stopped':
      return [
        html`Suppression list: ${one.text}${figure > 1 ? html`, and ${plural(figure - 1, 'other')}` : null}`,
        linkTo(view, 'suppressions'),
      ]
    case 'quotas':
      return [html`${one.text}${figure > 1 ? html`, and ${plural(figure - 1, 'other quota')}` : null}`, linkTo(view, 'quotas')]
    case 'corrupt-messages':
      return [html`${messages(figure)} unreadable, in the queue corrupt`, linkTo(view, 'messages', { queue: 'corrupt' })]
    case 'expiring-recipients':
      return [
        html`${atLeast(one, html`${plural(figure, 'recipient')}`)} ${figure === 1 ? 'expires' : 'expire'} within an hour`,
        linkTo(view, 'messages', { expires_within: '1h' }),
      ]
    case 'notices-due':
      return [html`${atLeast(one, html`${plural(figure, 'notice')}`)} not sent yet`, logLink(view, { text: '*cannot make a notice*' })]
    case 'warnings':
      return [
        longText(`${loggedNotes(figure, view.node)}, the last: ${one.text}`),
        logLink(view, {
          event: 'note',
          node: view.node,
          logged_after: instantText(one.since === null ? undefined : instantOf(one.since)),
        }),
      ]
  }
}

interface AttentionItem {
  /** Name by which an open screen finds the item in a newer print; different for all items. */
  readonly name: string
  readonly mark?: Html
  readonly sentence: Html
  readonly link: string
  readonly beside?: Html
}

const attentionItem = ({ name, mark = shapeOf('warning'), sentence, link, beside }: AttentionItem): Html =>
  html`<li ${renewed(`attention ${name}`)}>
    ${mark}
    <div class="what">${sentence}</div>
    ${beside}<a class="button" href="${link}">Look</a>
  </li>`

function reopening(view: View, destination: string, kind: DestinationTroubleJson['kind']): Html | null {
  if (!view.requester.mayOperate) return null
  if (kind === 'suspended') return buttonLink(`${destinationLink(view, destination)}/resume`, 'Resume…')
  const back = `destinations/${encodeURIComponent(destination)}`
  return buttonLink(linkTo(view, 'operations/new', { operation: 'flush', destination, back }), 'Flush…')
}

function attentionList(view: View, now: NowJson): Html | null {
  const { troubles, attention, subscriptions, as_of: at } = now
  const events = subscriptions.flatMap((one) => {
    const sentence = trouble(view, one)
    return sentence === null ? [] : [attentionItem({ name: `events ${one.name}`, sentence, link: subscriptionLink(view, one.name) })]
  })
  if (troubles.length + attention.length + events.length === 0) return null
  const troubled = troubles.reduce((sum, { destinations }) => sum + destinations, 0)
  const items = [
    ...attention.map((one) => {
      const [sentence, link] = conditionOf(view, one, now)
      return attentionItem({ name: one.kind, sentence, link })
    }),
    ...events,
    ...named(troubles.slice(0, MOST_SENTENCES)).map(([name, one]) => troubleItem(view, name, one)),
    ...(troubles.length > MOST_SENTENCES
      ? [
          attentionItem({
            name: 'destinations',
            sentence: html`${plural(troubled, 'destination')} need attention in all`,
            link: linkTo(view, 'destinations'),
          }),
        ]
      : []),
  ]
  return section(
    'Needs attention',
    html`<ul class="attention">
      ${items}
    </ul>`,
    { aside: html`<span ${renewed('attention time')}>as of ${clockTime(view, at)}</span>` },
  )
}

/** The reply for which a destination is closed, or the first cause of its last attempts with the number of further causes. */
function lastReply({ last_reply: reply, last_causes: causes, hint }: StatusDestinationJson): Part {
  const [first] = causes ?? []
  const text = reply ?? first?.cause
  if (text === undefined) return null
  const further = reply === null ? (causes ?? []).length - 1 : 0
  return html`${replyPart(text, { hint })}${further > 0 ? html`<span class="faint">+ ${plural(further, 'cause')}</span>` : null}`
}

const livePath = (one: StatusDestinationJson, member: string): string =>
  `largest_destinations/${encodeURIComponent(one.destination)}/${member}`

const destinationColumns = (view: View, most: number): readonly Column<StatusDestinationJson>[] => [
  {
    heading: 'Destination',
    isTitle: true,
    cell: (one) => destinationPart(view, one.destination),
  },
  { heading: 'State', cell: (one) => stateCell(view, one) },
  {
    heading: 'Recipients',
    kind: 'number',
    cell: (one) =>
      html`<a href="${linkTo(view, 'messages', { destination: one.destination })}" data-live="${livePath(one, 'waiting')}" data-form="count"
          >${count(one.waiting)}</a
        >${one.scheduled === null || one.scheduled === 0 ? null : html` <span class="faint">${count(one.scheduled)} scheduled</span>`}${one.waiting === 0 ? null : bar(one.waiting / most, toneOf(one.refuses_all ? 'refusing' : one.state))}`,
  },
  {
    heading: 'In flight',
    kind: 'number',
    cell: (one) =>
      one.in_flight === null
        ? '–'
        : html`<span data-live="${livePath(one, 'in_flight')}" data-form="count">${count(one.in_flight)}</span>/${one.window ?? '–'}`,
  },
  { heading: 'Next', cell: (one) => nextPart(view, one) },
  { heading: 'Last outcomes', cell: ({ last_outcomes: last }) => (last === null || last.length === 0 ? null : outcomeStrip(last, 20)) },
  { heading: 'Last reply', kind: 'reply', cell: lastReply },
]

const emptyQueue = (view: View): Html =>
  html`<div class="calm" data-state="empty">
    ${shapeOf('done')}
    <p class="title">Mail queue is empty</p>
    <p><a href="${linkTo(view, 'history')}">History</a> has the mail that was delivered or returned.</p>
  </div>`

function whereItWaits(view: View, now: NowJson): Html {
  const { closed_destinations: closed, refusing_destinations: refusing, largest_destinations: largest } = now
  // Of those with equal mail, the ones come first that the live values have.
  const all = new Map([...largest, ...closed, ...refusing].map((one) => [one.destination, one]))
  const shown = [...all.values()].toSorted((a, b) => b.waiting - a.waiting).slice(0, 20)
  return section(
    'Where it waits',
    table({
      caption: 'Destinations with the most waiting mail',
      columns: destinationColumns(view, Math.max(1, ...shown.map(({ waiting }) => waiting))),
      rows: shown,
      empty: `No destination${visiblePattern(view) === null ? '' : ' that you may see'} has waiting mail.`,
      kind: 'where',
      renewedBy: ({ destination }) => destination,
    }),
    {
      aside: html`<a href="${linkTo(view, 'causes')}">Causes</a> · <a href="${linkTo(view, 'destinations')}">All destinations</a>`,
    },
  )
}

/** Facts of all mail alone: no destination has a known part of it, where some are hidden from the client. */
const withoutPlaces = (now: NowJson): NowJson => ({ ...now, largest_destinations: [] })

/** The figures are those of the relay, also for a client that sees some destinations only. */
function limitedPart(view: View): Html | null {
  const pattern = visiblePattern(view)
  return pattern === null
    ? null
    : html`<p class="faint">
        The figures are of all mail of the relay. Destinations and what needs attention are those that you may see:
        <code>${breakable(pattern)}</code>.
      </p>`
}

/** Appears when an open screen lacks a condition that needs attention now, or has one that does not (browser/renewal.js). */
const changedConditions = (view: View): Html =>
  html`<p class="news below" role="status" data-changed hidden>
    What needs attention has changed. <a href="${linkTo(view, '')}">Show it</a>
  </p>`

const heading = html`<h1 class="unseen">Now</h1>`

/** The oldest message, and how much expires soon. */
function oldestPart(view: View, { oldest, attention }: NowJson): Part {
  if (oldest === null) return null
  const expiring = attention.find(({ kind }) => kind === 'expiring-recipients')?.count ?? 0
  return html`oldest <a href="${messageLink(view, oldest.queue_id)}">${age(view, oldest.arrival_time)}</a>${
      expiring === 0
        ? null
        : html` ·
            <a href="${linkTo(view, 'messages', { expires_within: '1h' })}"
              >${plural(expiring, 'recipient')} ${expiring === 1 ? 'expires' : 'expire'} within an hour</a
            >`
    }`
}

export function nowScreen(view: View, facts: NowFacts): Screen {
  const { now } = facts
  const figures = html`${flowFigures(view, facts)} ${queueStrip(view, now)}`
  if (now === null)
    return {
      title: 'Mail queue',
      place: '',
      ...untilCounted('api/v1/now'),
      main: html`${heading} ${countingNotice(figuresMissing(view))} ${figures}`,
    }
  const queued = now.queues.reduce((sum, one) => sum + one.messages, 0)
  return {
    title: queued === 0 ? 'Mail queue is empty' : `${messages(queued)} queued`,
    place: '',
    live: { path: 'api/v1/now', stream: 'api/v1/now/stream' },
    main: html`${heading} ${answer(nowSentence(visiblePattern(view) === null ? now : withoutPlaces(now)), oldestPart(view, now))}
    ${limitedPart(view)} ${changedConditions(view)} ${attentionList(view, now)} ${figures}
    ${queued === 0 ? emptyQueue(view) : html`${whereItWaits(view, now)} ${howOld(view, now)}`} ${nowTables(view, now)}`,
  }
}
