/** One message: why it is in the queue, every attempt with its reply, and the attempts that are planned. */
import { isPseudonym } from '../../../mail/pseudonym.ts'
import { shownQueue } from '../../../resources/message-json.ts'
import type { OperationName } from '../../../queue/operation-request.ts'
import { buttonText } from '../operation-screens.ts'
import type { FutureJson } from '../../../resources/future-attempts-json.ts'
import { requeuedAs } from '../../../mail/requeued.ts'
import type { MessageStoryJson } from '../../../resources/message-story-json.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { answer, buttonLink, heading, section, type Screen } from '../../markup/frame.ts'
import { endWords, nextName } from '../../../presentation/expiry-words.ts'
import { html, joined, type Html, type Part } from '../../../presentation/html.ts'
import { ownSettings } from '../../markup/own-settings.ts'
import { destinationLink, linkTo, logLink, messageLink } from '../../markup/links.ts'
import { goneMark, marked } from '../../markup/marks.ts'
import { facts, table, type Column, type Fact } from '../../markup/html-table.ts'
import { timeline, TIMELINE_SCALES, timelineAxis, type TimelineMark, type TimelineScale } from '../../markup/message-timeline.ts'
import { replyPart } from '../../markup/reply.ts'
import { axisTitle } from '../../../presentation/plots/plot-axis.ts'
import { sectionLinks } from './content-screen.ts'
import { attemptsSection, foldedAttempts } from './message-attempts.ts'
import { failingFirst, pageOf, type ListPage, type MessagePages } from './pages-of-message.ts'
import { messageSentence } from './message-sentence.ts'
import { byteSize, clockTime, count, distance, due, instantOf, plural } from '../../markup/times.ts'
import { visiblePattern, type View } from '../../markup/view.ts'
import { addressPart, breakable, destinationPart } from '../../markup/long-words.ts'

type Recipient = MessageStoryJson['recipients'][number]
type Attempt = MessageStoryJson['history'][number]
type Operation = MessageStoryJson['operations'][number]

interface MessageFacts {
  readonly message: MessageStoryJson
  /** Scale of the timelines. */
  readonly scale: TimelineScale
  readonly pages: MessagePages
  /** Settings in which the nodes differ. */
  readonly differing: readonly string[]
}

/** Operations that can change a message in its queue. */
function verbsOf(view: View, message: MessageStoryJson): readonly OperationName[] {
  const reclass = view.classes.length > 1 ? (['reclass'] as const) : []
  switch (shownQueue(message)) {
    case 'hold':
      return ['release', ...reclass, 'expire', 'delete']
    case 'corrupt':
      return ['delete']
    case 'trash':
      return ['restore']
    case 'gone':
      return []
    case 'scheduled':
      return ['release', 'reschedule', 'hold', ...reclass, 'requeue', 'expire', 'delete']
    case 'incoming':
    case 'active':
    case 'deferred':
      return ['flush', 'hold', ...reclass, 'requeue', 'expire', 'delete']
  }
}

const verbButton = (view: View, { queue_id: id }: MessageStoryJson, verb: OperationName): Html =>
  buttonLink(linkTo(view, 'operations/new', { operation: verb, scope: 'ids', id, back: `messages/${id}` }), buttonText(verb))

/** Null for a message in the queue, and for one whose failed recipients, if any, were erased. */
const resendButton = (view: View, message: MessageStoryJson): Part =>
  shownQueue(message) === 'gone' &&
  message.recipients.some(({ state, address }) => (state === 'bounced' || state === 'expired') && !isPseudonym(address))
    ? buttonLink(linkTo(view, 'history/resend', { id: message.queue_id, back: `messages/${message.queue_id}` }), 'Send again…')
    : null

const buttonsOf = (view: View, message: MessageStoryJson): Part =>
  view.requester.mayOperate ? [...verbsOf(view, message).map((verb) => verbButton(view, message, verb)), resendButton(view, message)] : null

/** In ms; a shorter life is not drawn. */
const SHORTEST_DRAWN = 60_000

/** Marks of one recipient: its attempts, the operations on the message, and what is planned. */
function marksOf(message: MessageStoryJson, attempts: readonly Attempt[], future: FutureJson | undefined): readonly TimelineMark[] {
  const past = attempts.map(({ time, outcome, reply, reason }) => ({
    at: instantOf(time),
    mark: outcome === 'deferred' ? 'deferred' : outcome,
    text: `${outcome}: ${reply ?? reason}`,
    isPlanned: false,
  }))
  const operations = message.operations.map(({ time, operation, who }) => ({
    at: instantOf(time),
    mark: 'running',
    text: `${operation} by ${who}`,
    isPlanned: false,
  }))
  // Of the mail that waits for a dead destination, each probe tries one recipient: the others have no attempt then.
  const isProbe = message.recipients.some(({ address, waits_for: waits }) => address === future?.recipient && waits === 'probe')
  const planned = (future?.attempts.slice(0, isProbe ? 1 : undefined) ?? []).map((time) => ({
    at: instantOf(time),
    mark: 'waiting',
    text: isProbe ? 'probe of the destination, with one of its recipients' : 'planned attempt',
    isPlanned: true,
  }))
  const warnings = (future?.warnings ?? []).map((time) => ({
    at: instantOf(time),
    mark: 'warning',
    text: 'delay warning to the sender',
    isPlanned: true,
  }))
  const end =
    future === undefined ? [] : [{ at: instantOf(future.expire_time), mark: 'expired', text: endWords(message.sender), isPlanned: true }]
  return [...past, ...operations, ...planned, ...warnings, ...end]
}

interface FutureWords {
  readonly made: number
  readonly isProbe: boolean
  /** End of the mail without a delivery. */
  readonly ends: string
}

function futureSentence(view: View, future: FutureJson, { made, isProbe, ends }: FutureWords): Part {
  const [next] = future.attempts
  if (next === undefined) return html`No further attempt is planned. It expires ${due(view, future.expire_time)}.`
  const warnings = future.warnings.length === 0 ? null : html`a delay warning to the sender ${joinedTimes(view, future.warnings)}; `
  if (isProbe)
    return html`While its destination is dead, each probe tries one of the recipients that wait there, the next probe ${due(view, next)};
    ${warnings}${ends} ${due(view, future.expire_time)} (${clockTime(view, future.expire_time)}).`
  return html`If it stays deferred:
  ${plural(future.planned, 'more attempt')}${future.planned === future.attempts.length ? null : html` (the first ${count(future.attempts.length)} are drawn)`},
  the next ${due(view, next)}; ${warnings}${ends}
  ${future.limit === null ? null : html`after attempt ${count(made + future.planned)} (${future.limit}), `}${due(view, future.expire_time)}
  (${clockTime(view, future.expire_time)}).`
}

const joinedTimes = (view: View, times: readonly number[]): Part => times.map((time, i) => html`${i === 0 ? '' : ', '}${due(view, time)}`)

/** Null when there is nothing but one instant. */
function drawing(view: View, { message, scale }: MessageFacts, address: string): Html | null {
  const attempts = message.history.filter((attempt) => attempt.recipient === address)
  const future = message.future.find((one) => one.recipient === address)
  const marks = marksOf(message, attempts, future)
  const begin = instantOf(message.received_time)
  const now = message.queue_name === 'gone' ? null : view.now
  const end = Math.max(...marks.map(({ at }) => at), now ?? begin)
  if (end - begin < SHORTEST_DRAWN) return null
  return timeline(
    view,
    { marks, begin, end, now, scale },
    `Attempts for ${address}: ${attempts.length} made, ${future?.attempts.length ?? 0} planned`,
  )
}

function recipientBlock(view: View, shown: MessageFacts, one: Recipient): Html {
  const { message } = shown
  const future = message.future.find(({ recipient }) => recipient === one.address)
  const reason = one.delay_reason ?? one.bounce_reason ?? null
  return html`<article class="recipient">
    <h3>${addressPart(one.address)} ${marked(one.state)}</h3>
    ${facts([
      ['destination', destinationPart(view, one.destination)],
      ['attempts', count(one.attempts)],
      [nextName(message.forced_expire), one.next_attempt_time === null ? null : due(view, one.next_attempt_time)],
      longFact('original address', one.orig_address, addressPart),
      ['reason', replyPart(reason), 'wide'],
    ])}
    ${drawing(view, shown, one.address)}
    ${future === undefined ? null : html`<p>${futureSentence(view, future, { made: one.attempts, isProbe: one.waits_for === 'probe', ends: endWords(message.sender) })}</p>`}
  </article>`
}

/** Recipients with a drawing; further ones are rows of a table. */
const MOST_DRAWN = 3

const recipientColumns = (view: View): readonly Column<Recipient>[] => [
  { heading: 'Recipient', isTitle: true, cell: ({ address }) => addressPart(address) },
  { heading: 'State', cell: ({ state }) => marked(state) },
  { heading: 'Destination', cell: ({ destination }) => destinationPart(view, destination) },
  { heading: 'Tries', kind: 'number', cell: ({ attempts }) => count(attempts) },
  { heading: 'Next', cell: ({ next_attempt_time: next }) => (next === null ? '–' : due(view, next)) },
  { heading: 'Reason', kind: 'reply', cell: (one) => replyPart(one.delay_reason ?? one.bounce_reason) },
]

/** Links to the timelines by time of day, and by the time since the arrival. */
const scaleLinks = (view: View, { message: { queue_id: id }, scale }: MessageFacts): Html =>
  html`<nav class="choices" aria-label="Scale of the timeline">
    ${TIMELINE_SCALES.map(
      (one) =>
        html`<a
          href="${linkTo(view, `messages/${encodeURIComponent(id)}`, { scale: one === TIMELINE_SCALES[0] ? null : one })}"
          ${one === scale ? html` aria-current="true"` : null}
          >${axisTitle(timelineAxis(one, view), view.now)}</a
        >`,
    )}
  </nav>`

/** Links to the other pages of a list of the message; null with one page. */
function pageLinks(
  view: View,
  { message: { queue_id: id }, pages: shown, scale }: MessageFacts,
  name: keyof MessagePages,
  { page, pages }: ListPage<unknown>,
): Html | null {
  if (pages === 1) return null
  const to = (number: number): string =>
    `${linkTo(view, `messages/${encodeURIComponent(id)}`, { ...shown, scale, [name]: number })}#${name}`
  return html`<nav class="pager" aria-label="Pages of ${name}">
    ${page > 1 ? html`<a class="button" href="${to(page - 1)}" rel="prev">Previous page</a>` : null} page ${page} of ${count(pages)}
    ${page < pages ? html`<a class="button" href="${to(page + 1)}" rel="next">Next page</a>` : null}
  </nav>`
}

function recipientsSection(view: View, shown: MessageFacts): Html {
  const { recipients } = shown.message
  const page = pageOf(failingFirst(recipients), shown.pages.recipients)
  const drawn = page.page === 1 ? page.rows.slice(0, MOST_DRAWN) : []
  const rest = page.rows.slice(drawn.length)
  return section(
    recipients.length === 1 ? 'Recipient' : `${count(recipients.length)} recipients`,
    html`${drawn.map((one) => recipientBlock(view, shown, one))}
    ${rest.length === 0 ? null : table({ caption: 'Further recipients', columns: recipientColumns(view), rows: rest, empty: '' })}
    ${pageLinks(view, shown, 'recipients', page)}`,
    { id: 'recipients', aside: shown.message.history.length < 2 && shown.message.future.length === 0 ? null : scaleLinks(view, shown) },
  )
}

const operationColumns = (view: View): readonly Column<Operation>[] => [
  { heading: 'Time', isTitle: true, cell: ({ time }) => clockTime(view, time) },
  { heading: 'Operation', cell: ({ id, operation }) => html`<a href="${linkTo(view, `operations/${id}`)}">${operation}</a>` },
  { heading: 'Who', cell: ({ who }) => who },
  { heading: 'Reason', cell: ({ reason }) => reason ?? '' },
]

/** In characters; a longer text has a line of its own. */
const BESIDE = 30

/** A text of any length as a fact, which is left out without one. */
const longFact = (name: string, text: string | null | undefined, shown: (text: string) => Html): Fact => [
  name,
  text === null || text === undefined || text === '' ? null : shown(text),
  (text ?? '').length > BESIDE ? 'wide' : undefined,
]

const codePart = (text: string): Html => html`<code>${breakable(text)}</code>`

/** The only recipient, or their number. */
function toText([first, ...others]: readonly Recipient[]): Part {
  if (first === undefined) return 'nobody'
  return others.length === 0 ? addressPart(first.address) : plural(others.length + 1, 'recipient')
}

/** Leads to the other mail for the same destination. */
function sameCausePart(view: View, { recipients }: MessageStoryJson): Part {
  const waiting = [...new Set(recipients.filter(({ next_attempt_time: next }) => next !== null).map(({ destination }) => destination))]
  const [only, ...others] = waiting
  return only === undefined || others.length > 0 ? null : html`<a href="${destinationLink(view, only)}">why mail for ${only} waits</a>`
}

/** Facts of the content and of the times of a message. */
const timeFacts = (view: View, message: MessageStoryJson): readonly Fact[] => [
  ['arrived', html`${clockTime(view, message.arrival_time)} (${distance(view, message.arrival_time)})`],
  ['size', byteSize(message.message_size)],
  longFact('From', message.from_header, addressPart),
  longFact('Subject', message.subject, breakable),
  longFact('Message-ID', message.message_id, codePart),
  [
    'not before',
    message.not_before === undefined ? null : html`${clockTime(view, message.not_before)} (${distance(view, message.not_before)})`,
  ],
  ['given up at', message.expires === undefined ? null : html`${clockTime(view, message.expires)} (${distance(view, message.expires)})`],
  [
    'deliver by',
    message.deliver_by === undefined
      ? null
      : html`${clockTime(view, message.deliver_by)} (${distance(view, message.deliver_by)}), mode ${message.by_mode}`,
  ],
  [
    nextName(message.forced_expire),
    message.next_attempt_time === null
      ? null
      : html`${due(view, message.next_attempt_time)}
        (${instantOf(message.next_attempt_time) <= view.now ? 'since ' : null}${clockTime(view, message.next_attempt_time)})`,
  ],
]

/** Links to other messages; null for none. */
function linksTo(view: View, ids: readonly string[]): Part {
  const each = [...new Set(ids)]
  return each.length === 0 ? null : joined(each.map((id) => html`<a href="${messageLink(view, id)}">${id}</a>`))
}

/** Messages in which recipients go on. */
const requeuedIds = ({ recipients }: MessageStoryJson): readonly string[] =>
  recipients.flatMap(({ state, last_reply: last }) => (state === 'removed' ? (requeuedAs(last) ?? []) : []))

/** Messages with which recipients were sent again. */
const resentIds = ({ recipients }: MessageStoryJson): readonly string[] => recipients.flatMap(({ resent_as: id }) => id ?? [])

/** Facts of the submission of a message, and links to more of it. */
function otherFacts(view: View, { message, differing }: MessageFacts): readonly Fact[] {
  const { queue_id: id } = message
  return [
    ['attempts at most', message.maximum_attempts === null ? null : count(message.maximum_attempts)],
    ['client', message.client === null ? null : html`<code class="whole">${message.client}</code>`],
    ['user', message.sasl_username],
    ['class', message.class ?? null],
    ['share', message.share ?? null],
    ['content', view.requester.mayReadContent && shownQueue(message) !== 'gone' ? sectionLinks(view, id) : null, 'wide'],
    ['delay warnings sent', message.warnings === 0 ? null : count(message.warnings)],
    longFact('envelope id', message.envid, codePart),
    ['requeued as', linksTo(view, requeuedIds(message)), 'wide'],
    ['sent again as', linksTo(view, resentIds(message)), 'wide'],
    ['log', visiblePattern(view) === null ? html`<a href="${logLink(view, { queue_id: id })}">warnings and errors</a>` : null],
    ['by rule', message.rule, 'wide'],
    ['shown', message.rule === null ? null : ownSettings(view, differing), 'wide'],
  ]
}

export function messageScreen(view: View, shown: MessageFacts): Screen {
  const { message } = shown
  const attempts = pageOf(foldedAttempts(message.history), shown.pages.attempts)
  const { queue_id: id } = message
  const queue = shownQueue(message)
  return {
    title: id,
    place: queue === 'gone' ? 'history' : 'messages',
    main: html`${heading(
      html`<span class="id">${id}</span> ${queue === 'gone' ? goneMark('has left the queue') : marked(queue)}`,
      html`from ${addressPart(message.sender)} to ${toText(message.recipients)}`,
      buttonsOf(view, message),
    )}
    ${answer(messageSentence(message, view), sameCausePart(view, message))}
    ${facts([...timeFacts(view, message), ...otherFacts(view, shown)])} ${recipientsSection(view, shown)}
    ${attemptsSection(view, message, { page: attempts, links: pageLinks(view, shown, 'attempts', attempts) })}
    ${message.operations.length === 0 ? null : section('Operations', table({ caption: 'Operations on this message', columns: operationColumns(view), rows: message.operations, empty: '' }))}
    ${asCommand(['queue', 'show', id], { method: 'GET', path: `api/v1/messages/${encodeURIComponent(id)}` })}`,
  }
}
