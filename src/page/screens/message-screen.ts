/** One message: why it is in the queue, every attempt with its reply, and the attempts that are planned. */
import { shownQueue } from '../../resources/message-json.ts'
import type { OperationName } from '../../queue/operation-request.ts'
import { buttonText } from './operation-screens.ts'
import type { FutureJson } from '../../resources/future-attempts-json.ts'
import type { MessageStoryJson } from '../../resources/message-story-json.ts'
import { asCommand } from '../markup/command-lines.ts'
import { buttonLink, heading, section, type Screen } from '../markup/frame.ts'
import { html, type Html, type Part } from '../../presentation/html.ts'
import { destinationLink, linkTo } from '../markup/links.ts'
import { hintPart, marked } from '../markup/marks.ts'
import { facts, table, type Column } from '../markup/html-table.ts'
import { timeline, type TimelineMark } from '../markup/message-timeline.ts'
import { byteSize, clockTime, count, distance, due, instantOf, plural } from '../markup/times.ts'
import type { View } from '../markup/view.ts'

type Recipient = MessageStoryJson['recipients'][number]
type Attempt = MessageStoryJson['history'][number]
type Operation = MessageStoryJson['operations'][number]

const WAITS: Readonly<Record<MessageStoryJson['waits_for'], string>> = {
  'due-time': 'It waits for its next attempt.',
  schedule: 'It is scheduled: its client has named the time.',
  slot: 'It waits for a delivery slot.',
  delivery: 'It is in delivery.',
  probe: 'It waits because its destination is dead.',
  resume: 'It waits because its destination is suspended.',
  release: 'It is on hold until it is released.',
  inspection: 'It is unreadable, and stays until it is deleted.',
  restore: 'It is in the trash, and can be restored.',
  nothing: 'It waits for nothing: all its recipients have an outcome.',
}

/** Operations that can change a message in its queue. */
function verbsOf(message: MessageStoryJson): readonly OperationName[] {
  switch (shownQueue(message)) {
    case 'hold':
      return ['release', 'expire', 'delete']
    case 'corrupt':
      return ['delete']
    case 'trash':
      return ['restore']
    case 'gone':
      return []
    case 'scheduled':
      return ['release', 'hold', 'requeue', 'expire', 'delete']
    case 'incoming':
    case 'active':
    case 'deferred':
      return ['flush', 'hold', 'requeue', 'expire', 'delete']
  }
}

const buttonsOf = (view: View, message: MessageStoryJson): Part =>
  view.requester.mayOperate
    ? verbsOf(message).map((verb) =>
        buttonLink(
          linkTo(view, 'operations/new', { operation: verb, scope: 'ids', id: message.queue_id, back: `messages/${message.queue_id}` }),
          buttonText(verb),
        ),
      )
    : null

/** Marks of one recipient, or of all when they share their attempts. */
function marksOf(message: MessageStoryJson, attempts: readonly Attempt[], future: FutureJson | undefined): readonly TimelineMark[] {
  const ageOf = (seconds: number) => instantOf(seconds - message.arrival_time)
  const past = attempts.map(({ time, outcome, reply, reason }) => ({
    age: ageOf(time),
    mark: outcome === 'deferred' ? 'deferred' : outcome,
    text: `${outcome}: ${reply ?? reason}`,
    isPlanned: false,
  }))
  const planned = (future?.attempts ?? []).map((time) => ({ age: ageOf(time), mark: 'waiting', text: 'planned attempt', isPlanned: true }))
  const warnings = (future?.warnings ?? []).map((time) => ({
    age: ageOf(time),
    mark: 'warning',
    text: 'delay warning to the sender',
    isPlanned: true,
  }))
  const end =
    future === undefined ? [] : [{ age: ageOf(future.expire_time), mark: 'expired', text: 'returned to the sender', isPlanned: true }]
  return [...past, ...planned, ...warnings, ...end]
}

function futureSentence(view: View, future: FutureJson, made: number): Part {
  const [next, ...rest] = future.attempts
  if (next === undefined) return html`No further attempt is planned. It expires ${due(view, future.expire_time)}.`
  return html`If it stays deferred: ${plural(rest.length + 1, 'more attempt')}, the next ${due(view, next)};
  ${future.warnings.length === 0 ? null : html`a delay warning to the sender ${joinedTimes(view, future.warnings)}; `}returned to the sender
  ${future.limit === null ? null : html`after attempt ${count(made + future.planned)} (${future.limit}), `}${due(view, future.expire_time)}
  (${clockTime(view, future.expire_time)}).`
}

const joinedTimes = (view: View, times: readonly number[]): Part => times.map((time, i) => html`${i === 0 ? '' : ', '}${due(view, time)}`)

function drawing(view: View, message: MessageStoryJson, address: string): Html {
  const attempts = message.history.filter((attempt) => attempt.recipient === address)
  const future = message.future.find((one) => one.recipient === address)
  const marks = marksOf(message, attempts, future)
  const end = Math.max(...marks.map((mark) => mark.age), future === undefined ? 0 : 1, 60_000)
  const isGone = message.queue_name === 'gone'
  const now = isGone ? null : view.now - instantOf(message.arrival_time)
  return timeline(
    { marks, now, end: Math.max(end, now ?? 0) },
    `Attempts for ${address}: ${attempts.length} made, ${future?.attempts.length ?? 0} planned`,
  )
}

function recipientBlock(view: View, message: MessageStoryJson, one: Recipient): Html {
  const future = message.future.find(({ recipient }) => recipient === one.address)
  const reason = one.delay_reason ?? one.bounce_reason ?? null
  return html`<article class="recipient">
    <h3><span class="address">${one.address}</span> ${marked(one.state)}</h3>
    ${facts([
      ['destination', html`<a href="${destinationLink(view, one.destination)}">${one.destination}</a>`],
      ['attempts', count(one.attempts)],
      ['next attempt', one.next_attempt_time === null ? null : due(view, one.next_attempt_time)],
      ['original address', one.orig_address ?? null],
      ['reason', reason === null ? null : html`<code class="reply">${reason}</code>`, 'wide'],
    ])}
    ${drawing(view, message, one.address)} ${future === undefined ? null : html`<p>${futureSentence(view, future, one.attempts)}</p>`}
  </article>`
}

/** Recipients with a drawing; further ones are rows of a table. */
const MOST_DRAWN = 3

const recipientColumns = (view: View): readonly Column<Recipient>[] => [
  { heading: 'Recipient', isTitle: true, cell: ({ address }) => html`<span class="address">${address}</span>` },
  { heading: 'State', cell: ({ state }) => marked(state) },
  { heading: 'Destination', cell: ({ destination }) => html`<a href="${destinationLink(view, destination)}">${destination}</a>` },
  { heading: 'Tries', kind: 'number', cell: ({ attempts }) => count(attempts) },
  { heading: 'Next', cell: ({ next_attempt_time: next }) => (next === null ? '–' : due(view, next)) },
  { heading: 'Reason', kind: 'code', cell: (one) => html`<span class="reply">${one.delay_reason ?? one.bounce_reason ?? ''}</span>` },
]

function recipientsSection(view: View, message: MessageStoryJson): Html {
  const shown = message.recipients.slice(0, MOST_DRAWN)
  const rest = message.recipients.slice(MOST_DRAWN)
  return html`<section>
    <h2>${message.recipients.length === 1 ? 'Recipient' : `${count(message.recipients.length)} recipients`}</h2>
    ${shown.map((one) => recipientBlock(view, message, one))}
    ${rest.length === 0 ? null : table({ caption: 'Further recipients', columns: recipientColumns(view), rows: rest, empty: '' })}
  </section>`
}

const attemptColumns = (view: View, hasSeveral: boolean): readonly Column<Attempt>[] => [
  { heading: 'Time', isTitle: true, cell: ({ time }) => clockTime(view, time) },
  { heading: 'Outcome', cell: ({ outcome }) => marked(outcome) },
  ...(hasSeveral ? [{ heading: 'Recipient', cell: ({ recipient }: Attempt) => html`<span class="address">${recipient}</span>` }] : []),
  {
    heading: 'Reply',
    kind: 'code',
    cell: ({ reply, reason, hint }) => html`<span class="reply">${reply ?? reason}</span>${hintPart(hint)}`,
  },
  { heading: 'Server', kind: 'code', cell: ({ host, stage }) => html`${host ?? 'none reached'} <span class="faint">(${stage})</span>` },
  { heading: 'Seconds', kind: 'number', cell: ({ delays }) => delays.map((delay) => Number(delay.toFixed(1))).join('/') },
]

function attemptsSection(view: View, { history, recipients }: MessageStoryJson): Html {
  return section(
    'Attempts',
    table({
      caption: 'Attempts',
      columns: attemptColumns(view, recipients.length > 1),
      rows: history,
      empty: 'No attempt yet.',
    }),
    { aside: history.length === 0 ? null : 'seconds: before the queue, in the queue, connection, transmission' },
  )
}

const operationColumns = (view: View): readonly Column<Operation>[] => [
  { heading: 'Time', isTitle: true, cell: ({ time }) => clockTime(view, time) },
  { heading: 'Operation', cell: ({ id, operation }) => html`<a href="${linkTo(view, `operations/${id}`)}">${operation}</a>` },
  { heading: 'Who', cell: ({ who }) => who },
  { heading: 'Reason', cell: ({ reason }) => reason ?? '' },
]

export function messageScreen(view: View, message: MessageStoryJson): Screen {
  const { queue_id: id } = message
  const queue = shownQueue(message)
  return {
    title: id,
    place: queue === 'gone' ? 'history' : 'messages',
    main: html`${heading(
      html`<span class="id">${id}</span> ${marked(queue, queue === 'gone' ? 'has left the queue' : queue)}`,
      html`${WAITS[message.waits_for]}${message.forced_expire ? ' An operator has made it expire.' : null}`,
      buttonsOf(view, message),
    )}
    ${facts([
      ['sender', html`<span class="address">${message.sender}</span>`],
      ['arrived', html`${clockTime(view, message.arrival_time)} (${distance(view, message.arrival_time)})`],
      ['size', byteSize(message.message_size)],
      ['Message-ID', message.message_id === null ? null : html`<code>${message.message_id}</code>`],
      [
        'not before',
        message.not_before === undefined ? null : html`${clockTime(view, message.not_before)} (${distance(view, message.not_before)})`,
      ],
      [
        'given up at',
        message.expires === undefined ? null : html`${clockTime(view, message.expires)} (${distance(view, message.expires)})`,
      ],
      [
        'deliver by',
        message.deliver_by === undefined
          ? null
          : html`${clockTime(view, message.deliver_by)} (${distance(view, message.deliver_by)}), mode ${message.by_mode}`,
      ],
      ['attempts at most', message.maximum_attempts === null ? null : count(message.maximum_attempts)],
      ['client', message.client === null ? null : html`<code>${message.client}</code>`],
      ['user', message.sasl_username],
      [
        'next attempt',
        message.next_attempt_time === null
          ? null
          : html`${due(view, message.next_attempt_time)} (${clockTime(view, message.next_attempt_time)})`,
      ],
      [
        'content',
        view.requester.mayReadContent && queue !== 'gone'
          ? html`<a href="${linkTo(view, `api/v1/messages/${encodeURIComponent(id)}/content`)}" download>Download</a>`
          : null,
      ],
      ['by rule', message.rule, 'wide'],
    ])}
    ${recipientsSection(view, message)} ${attemptsSection(view, message)}
    ${message.operations.length === 0 ? null : section('Operations', table({ caption: 'Operations on this message', columns: operationColumns(view), rows: message.operations, empty: '' }))}
    ${asCommand(['queue', 'show', id], { method: 'GET', path: `api/v1/messages/${encodeURIComponent(id)}` })}`,
  }
}
