/** An operation in its three steps: the dry run, the progress, and the result with its undo. */
import { asSentence, transferText } from '../../presentation/text.ts'
import { returnTime } from '../../presentation/expiry-words.ts'
import { actionWords } from '../../presentation/action-words.ts'
import { ERASE, RESEND, type AskedOperation, type OperationName, type PassedOver } from '../../queue/operation-request.ts'
import { namedTimeText } from '../../queue/operation-words.ts'
import type { OperationJson, OperationPlanJson } from '../../resources/operation-json.ts'
import { asCommand, type ApiCall } from '../markup/command-lines.ts'
import { causeTitle, destinationsText } from '../../resources/cause-json.ts'
import type { KnownCause } from '../../queries/counts/causes.ts'
import type { Screen } from '../markup/frame.ts'
import { field, hidden } from '../markup/fields.ts'
import { html, type Html, type Part } from '../../presentation/html.ts'
import { linkTo, messageLink } from '../markup/links.ts'
import { marked, shapeOf } from '../markup/marks.ts'
import { facts } from '../markup/html-table.ts'
import { byteSize, clockTime, count, distance, messages, plural, zonedTime } from '../markup/times.ts'
import { passedOverTexts } from '../../presentation/passed-over.ts'
import type { View } from '../markup/view.ts'
import { breakable } from '../markup/long-words.ts'

interface Verb {
  readonly name: string
  /** Consequences of the operation, for the dry run. */
  readonly about: string
  /** `3 messages were deleted` */
  readonly past: string
  /** A sentence about changes that are not counted. */
  readonly uncounted?: string
}

const TEXTS: Readonly<Record<OperationName, Verb>> = {
  flush: {
    name: 'Flush',
    about: 'Each message becomes due now. Destinations that are dead are tried again; suspended ones get no mail until they are resumed.',
    past: 'made due',
  },
  hold: {
    name: 'Hold',
    about: 'Each message stays in the queue without attempts, and does not expire, until it is released.',
    past: 'put on hold',
  },
  release: {
    name: 'Release',
    about: 'Each message on hold returns to the queue, and is tried as it becomes due. Each scheduled message is sent now.',
    past: 'released',
  },
  requeue: {
    name: 'Requeue',
    about: 'Each message is routed again, as if it had just arrived, with a new queue id and a new lifetime.',
    past: 'requeued',
  },
  expire: {
    name: 'Expire',
    about: `Each message is returned as undeliverable, without another attempt. ${returnTime('Flush')}`,
    past: 'made to expire',
  },
  delete: {
    name: 'Delete',
    about: 'Each message moves to the trash, from which it can be restored. Senders get no notice.',
    past: 'moved to the trash',
  },
  restore: { name: 'Restore', about: 'Each message returns from the trash to the queue.', past: 'restored' },
  reschedule: {
    name: 'Reschedule',
    about: 'The lifetime is counted from that time.',
    past: 'rescheduled',
  },
  reclass: {
    name: 'Change class',
    about: 'Expiry and the next retry stay. A message that has the class already stays as it is.',
    past: 'given another class',
  },
}

/** Why an operation has left messages unchanged, beside what happened meanwhile. */
const ALREADY: ReadonlyMap<string, string> = new Map<OperationName, string>([
  ['flush', 'were due already, on hold or scheduled'],
  ['hold', 'were on hold already'],
  ['release', 'were neither on hold nor scheduled'],
  ['expire', 'were expiring already'],
  ['reclass', 'had the class already'],
])

/** Operations on departed mail, which have plans of their own. */
const DEPARTED: ReadonlyMap<string, Verb> = new Map([
  [RESEND, { name: 'Send again', about: '', past: 'sent again' }],
  [
    ERASE,
    {
      name: 'Erase',
      about: '',
      past: 'changed in the history',
      uncounted: 'Kept contents of returned mail, dialogues and events are erased beside them, and not counted here.',
    },
  ],
])

/** Text of the button that leads to the dry run: `Flush…`. */
export const buttonText = (operation: OperationName): string => `${TEXTS[operation].name}…`

const isVerb = (operation: string): operation is OperationName => operation in TEXTS

/** Texts of an operation on messages; null for other actions of the audit log, such as a suspension. */
const textsOf = (operation: string): Verb | null => DEPARTED.get(operation) ?? (isVerb(operation) ? TEXTS[operation] : null)

/** An action that is not an operation on messages has its name. */
const nameOf = (operation: string): string => textsOf(operation)?.name ?? asSentence(actionWords(operation))

interface PlanFacts {
  readonly plan: OperationPlanJson & Pick<AskedOperation, 'operation' | 'release' | 'class'>
  /** Selection for people: `from app@example.com`. */
  readonly selection: string
  /** The cause that the filter selects; null when it selects none that was shown. */
  readonly cause: KnownCause | null
  readonly words: readonly string[]
  readonly call: ApiCall
  /** Query that makes the plan again. */
  readonly again: string
  /** Idempotency key of the form. */
  readonly key: string
  /** Path below the root to which the operator returns. */
  readonly back: string
  /** About a refused attempt to carry out the plan; null without one. */
  readonly problem: string | null
}

/** From this number of messages on, the operator confirms by typing the number. */
export const TYPED_FROM = 1_000

/** Pattern of a number as people type it: with or without a separator of thousands. */
const typedPattern = (value: number): string => count(value).replaceAll(',', '[ ,.]?')

/** Texts about the messages that a flush passes over; null for none. */
const passedOverText = (passed: PassedOver): string | null => passedOverTexts(passed).join('; ') || null

/** `mail that waits for 421 4.7.28 unusual rate of mail from · (end of data) at gmail.com`. */
function selectionText({ selection, cause: known }: PlanFacts): string {
  if (known === null) return selection
  const { cause } = known
  const where = 'destination' in cause ? cause.destination : destinationsText(cause)
  const what = cause.on_hold ? 'mail on hold that waited for' : 'mail that waits for'
  return `${what} ${causeTitle(cause)}${cause.stage === null ? '' : ` (${cause.stage})`} at ${where}`
}

function planFacts(
  view: View,
  {
    recipients,
    cause: known,
    matched,
    bytes,
    oldest,
    destinations,
    in_transfer: inTransfer,
    told_senders: told,
    undo,
    ...passed
  }: OperationPlanJson & Pick<PlanFacts, 'cause'>,
): Html {
  return facts([
    ['messages', html`<strong>${count(matched)}</strong>${recipients === matched ? null : ` with ${plural(recipients, 'recipient')}`}`],
    [
      'of this cause',
      known === null
        ? null
        : html`${plural(known.cause.recipients, 'recipient')}, counted ${distance(view, known.as_of)}; a message is changed as a whole`,
    ],
    ['size', byteSize(bytes)],
    ['oldest', oldest === null ? null : distance(view, oldest)],
    ['destinations', count(destinations)],
    ['in transfer', inTransfer === 0 ? null : html`${count(inTransfer)}: delivered and bounced stand`],
    ['others', passedOverText(passed)],
    ['senders', told ? 'get a notice, except the null sender and those that asked for none' : 'get no notice'],
    ['undo', undo === null ? html`<strong>not possible</strong>` : html`possible until ${clockTime(view, undo)}`],
  ])
}

const examplesOf = (view: View, { examples, matched }: OperationPlanJson): Html | null =>
  examples.length === 0
    ? null
    : html`<details>
        <summary>${examples.length === matched ? 'The messages' : `The first ${count(examples.length)} of them`}</summary>
        <ul class="ids">
          ${examples.map(
            ({ queue_id: id }) =>
              html`<li>
                <a href="${messageLink(view, id)}"><code>${id}</code></a>
              </li>`,
          )}
        </ul>
      </details>`

/** `Delete 1,482 messages` */
const actionText = ({ operation, matched }: Pick<PlanFacts['plan'], 'operation' | 'matched'>): string =>
  `${nameOf(operation)} ${messages(matched)}`

function confirmation(view: View, { plan, back, again, key }: PlanFacts): Html {
  const mustType = plan.matched > TYPED_FROM
  return html`<form method="post" action="${linkTo(view, 'operations')}">
    ${hidden({ plan: plan.token, key, again, back })}
    <label class="field"><span>Reason (optional, for the audit log)</span><input name="reason" maxlength="200" autocomplete="off" /></label>
    ${mustType ? html`<label class="field"><span>Type ${count(plan.matched)} to confirm</span><input name="typed" inputmode="numeric" required pattern="${typedPattern(plan.matched)}" title="The number of messages: ${count(plan.matched)}" autocomplete="off" /></label>` : null}
    <p class="buttons">
      <button type="submit" class="${plan.operation === 'delete' || plan.operation === 'expire' ? 'danger' : 'primary'}">
        ${actionText(plan)}
      </button>
      <a class="button" href="${linkTo(view, back)}" data-close>Cancel</a>
    </p>
  </form>`
}

/** The time or the class that the messages get; null for an operation without a choice. A span is counted when the plan is carried out. */
function choiceText(view: View, { release, class: named }: PlanFacts['plan']): string | null {
  if (named !== null) return `Deliveries have their turns in the class ${named}.`
  if (release === null) return null
  return release.kind === 'span'
    ? `No delivery begins within ${namedTimeText(release)} of your confirmation.`
    : `No delivery begins before ${zonedTime(view, release.at)}.`
}

/** The dry run. Nothing has changed yet. */
export function planScreen(view: View, planned: PlanFacts): Screen {
  const { plan, words, call, back, problem } = planned
  const selection = selectionText(planned)
  const [name, about] = [nameOf(plan.operation), textsOf(plan.operation)?.about]
  const title = plan.matched === 0 ? `${name}: no message` : `${actionText(plan)}?`
  return {
    title,
    place: 'operations',
    main: html`<div class="panel" data-panel>
      <h1>${title}</h1>
      ${problem === null ? null : html`<p class="problem" role="alert">${shapeOf('warning')} ${problem}</p>`}
      ${selection === '' ? null : html`<p class="faint">${selection}</p>`}
      ${
        plan.matched === 0
          ? html`<p>No message can be changed by this operation.</p>
              ${passedOverText(plan) === null ? null : facts([['others', passedOverText(plan)]])}
              <p class="buttons"><a class="button" href="${linkTo(view, back)}" data-close>Back</a></p>`
          : html`<p>${[choiceText(view, plan), about].filter((one) => one !== null).join(' ')}</p>
              ${planFacts(view, { ...plan, cause: planned.cause })}${examplesOf(view, plan)}${confirmation(view, planned)}`
      }
      ${asCommand(words, call)}
    </div>`,
  }
}

/** The result of an action that does not change messages. */
function otherResult(state: OperationJson['state'], error: string | null): Part {
  switch (state) {
    case 'running':
      return 'It is being done.'
    case 'done':
      return 'It was done.'
    case 'cancelled':
      return 'Cancelled.'
    case 'failed':
      return html`Failed${error === null ? '' : `: ${error}`}.`
  }
}

/** The result of an operation on messages or, for another action, its end. */
function resultOf(one: OperationJson): Part {
  const verb = textsOf(one.operation)
  if (verb === null) return otherResult(one.state, one.error)
  return html`${messagesResult(one, verb)}${verb.uncounted === undefined ? null : ` ${verb.uncounted}`}`
}

function messagesResult({ operation, changed, matched, in_transfer: inTransfer, state, error }: OperationJson, { past }: Verb): Part {
  const done = `${messages(changed)} ${changed === 1 ? 'was' : 'were'} ${past}`
  const left = matched - changed
  const already = ALREADY.get(operation)
  const why = `${already === undefined ? '' : `${already}, `}had left the queue or changed meanwhile`
  const rest = left > 0 ? `; ${plural(left, 'other')} ${why}` : ''
  switch (state) {
    case 'running':
      return html`Messages ${past} so far: <span data-live="changed" data-form="count">${count(changed)}</span>.`
    case 'done':
      return `${done}${rest}${inTransfer > 0 ? `; ${transferText(inTransfer)}` : ''}.`
    case 'cancelled':
      return `Cancelled. ${done} before that.`
    case 'failed':
      return html`Failed${error === null ? '' : `: ${error}`}. ${done} before that.`
  }
}

function progressOf({ changed, expected, state }: OperationJson): Html | null {
  if (state !== 'running') return null
  if (expected === null) return html`<p class="progress"><progress aria-label="Progress"></progress></p>`
  const most = Math.max(expected, changed, 1)
  return html`<p class="progress">
    <progress max="${most}" value="${changed}" data-live="changed" data-form="progress" aria-label="Progress"></progress>
    <span data-live="changed" data-form="count">${count(changed)}</span> of ${count(expected)}
  </p>`
}

function undoForm(view: View, { operation: { id, undo_until: until, undone_by: undoneBy, state }, back }: OperationFacts): Part {
  if (undoneBy !== null) return html`<p>It was undone by <a href="${linkTo(view, `operations/${undoneBy}`)}">a later operation</a>.</p>`
  if (state === 'running' || until === null || !view.requester.mayOperate) return null
  return html`<form method="post" action="${linkTo(view, `operations/${id}/undo`, { back })}">
    <button type="submit" class="primary">Undo</button> <span class="faint">possible until ${clockTime(view, until)}</span>
  </form>`
}

const cancelForm = (view: View, { operation: { id, state }, back }: OperationFacts): Part =>
  state === 'running' && view.requester.mayOperate
    ? html`<form method="post" action="${linkTo(view, `operations/${id}/cancel`, { back })}">
        <button type="submit">Cancel</button> <span class="faint">ends after the messages of the current round</span>
      </form>`
    : null

interface OperationFacts {
  readonly operation: OperationJson
  readonly back: string | null
}

export function operationScreen(view: View, shown: OperationFacts): Screen {
  const { operation: one, back } = shown
  const { id, operation, state, who, reason, time, arguments: words, undoes, request_id: request } = one
  return {
    title: `${nameOf(operation)}: ${state}`,
    place: 'operations',
    live: state === 'running' ? { path: `api/v1/operations/${id}` } : null,
    ...(state === 'running' ? { refresh: 2 } : {}),
    main: html`<div class="panel" data-state="${state}">
      <h1>${nameOf(operation)} ${marked(state)}</h1>
      <p role="status">${resultOf(one)}</p>
      ${progressOf(one)} ${cancelForm(view, shown)} ${undoForm(view, shown)}
      ${facts([
        ['who', breakable(who)],
        ['reason', reason, 'wide'],
        ['started', html`${clockTime(view, time)} (${distance(view, time)})`],
        ['undoes', undoes === null ? null : html`<a href="${linkTo(view, `operations/${undoes}`)}">an earlier operation</a>`],
        ['arguments', words === '' ? null : html`<code>${words}</code>`, 'wide'],
        ['request', request === null ? null : breakable(request), 'wide'],
      ])}
      <p>${back === null ? null : html`<a href="${linkTo(view, back)}">Back</a> · `}<a href="${linkTo(view, 'audit')}">Audit log</a></p>
    </div>`,
  }
}

/** The question for the time of a reschedule, before its dry run. `query` has the selection. */
export const timeQuestion = (view: View, { query, back, problem }: TimeQuestion): Screen => ({
  title: 'Reschedule: when?',
  place: 'operations',
  main: html`<div class="panel" data-panel>
    <h1>Reschedule: when?</h1>
    ${problem === null ? null : html`<p class="problem" role="alert">${shapeOf('warning')} ${problem}</p>`}
    <form action="${linkTo(view, 'operations/new')}" method="get" data-dialog>
      ${hidden(query)} ${field({ name: 'not_before', label: 'No delivery before', value: '', example: '2h', isRequired: true })}
      <p class="faint">A time from now such as 2h, or one such as 2026-11-24T08:00:00Z.</p>
      <p class="buttons">
        <button type="submit" class="primary">Continue</button> <a class="button" href="${linkTo(view, back)}" data-close>Cancel</a>
      </p>
    </form>
  </div>`,
})

interface TimeQuestion {
  readonly query: Readonly<Record<string, readonly string[]>>
  readonly back: string
  readonly problem: string | null
}

/** The question for the class of a reclass, before its dry run. */
export const classQuestion = (view: View, { query, back, classes }: ClassQuestion): Screen => ({
  title: 'Change class: to which?',
  place: 'operations',
  main: html`<div class="panel" data-panel>
    <h1>Change class: to which?</h1>
    <form action="${linkTo(view, 'operations/new')}" method="get" data-dialog>
      ${hidden(query)}
      <label class="field"
        ><span>Class</span
        ><select name="to_class" required>
          ${classes.map((name) => html`<option>${name}</option>`)}
        </select></label
      >
      <p class="buttons">
        <button type="submit" class="primary">Continue</button> <a class="button" href="${linkTo(view, back)}" data-close>Cancel</a>
      </p>
    </form>
  </div>`,
})

interface ClassQuestion extends Pick<TimeQuestion, 'query' | 'back'> {
  readonly classes: readonly string[]
}

/** The operations form without a checked message. */
export const nothingSelected = (view: View, back: string): Screen => ({
  title: 'No message is checked',
  place: 'operations',
  main: html`<div class="panel" data-panel>
    <h1>No message is checked</h1>
    <p>Check the messages to change, or choose all that match.</p>
    <p class="buttons"><a class="button" href="${linkTo(view, back)}" data-close>Back</a></p>
  </div>`,
})
