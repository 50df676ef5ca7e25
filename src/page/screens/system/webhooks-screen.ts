/** The subscriptions to events with their lag and last answers, the form that adds one, and the questions before a change of one. */
import { eventsBehind } from '../../../resources/events-behind.ts'
import type { SubscriptionJson, SubscriptionListJson, TestAnswerJson } from '../../../resources/subscription-json.ts'
import { html, type Part } from '../../../presentation/html.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { checkBox, choice, field, type FormField, type FormProblem } from '../../markup/fields.ts'
import { buttonLink, heading, type Screen } from '../../markup/frame.ts'
import { facts, table, type Column } from '../../markup/html-table.ts'
import { linkTo } from '../../markup/links.ts'
import { shapeOf } from '../../markup/marks.ts'
import { questionPanel } from '../../markup/question-panel.ts'
import { secretPanel } from '../../markup/secret-panel.ts'
import { clockTime, count, plural, tookText } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'
import { behindOf, lastAnswer, stateMark, subscriptionLink, subscriptionPlace, targetOf } from './subscription-marks.ts'
import { breakable } from '../../markup/long-words.ts'

const figure = (name: string, member: 'parked' | 'lost', value: number): Part =>
  html`<span data-live="subscriptions/${encodeURIComponent(name)}/${member}" data-form="count">${count(value)}</span>`

const columnsOf = (view: View): readonly Column<SubscriptionJson>[] => [
  { heading: 'Name', isTitle: true, cell: ({ name }) => html`<a href="${subscriptionLink(view, name)}">${breakable(name)}</a>` },
  { heading: 'State', cell: stateMark },
  { heading: 'Events behind', kind: 'number', cell: (one) => behindOf(view, one) },
  { heading: 'Events parked', kind: 'number', cell: ({ name, parked }) => figure(name, 'parked', parked) },
  { heading: 'Events lost', kind: 'number', cell: ({ name, lost }) => figure(name, 'lost', lost) },
  {
    heading: 'Sent to, last answer',
    kind: 'reply',
    cell: (one) => html`<span class="code">${targetOf(one)}</span><br />${lastAnswer(view, one)}`,
  },
]

export const webhooksScreen = (view: View, { subscriptions }: SubscriptionListJson): Screen => ({
  title: 'Webhooks',
  place: 'webhooks',
  live: { path: 'api/v1/subscriptions' },
  main: html`${heading(
    'Webhooks',
    html`The programs that are told of <a href="${linkTo(view, 'events')}">events</a>, and how far each of them has come. Events behind are
      of all types.`,
    view.requester.mayAdminister ? buttonLink(linkTo(view, 'new-webhook'), 'Add…') : null,
  )}
  ${table({
    caption: 'Subscriptions to events',
    columns: columnsOf(view),
    rows: subscriptions,
    kind: 'subscriptions',
    renewedBy: ({ name }) => name,
    empty: 'No program has subscribed. “Add…”, deferd webhook add, or an [events.NAME] table, subscribes one.',
  })}
  ${asCommand(['webhook', 'list'], { method: 'GET', path: 'api/v1/subscriptions' })}`,
})

/** The fields of the form, as they were sent. */
export interface WebhookText {
  readonly name: string
  readonly to: string
  readonly types: string
  readonly destinations: string
  readonly senders: string
  readonly format: string
  readonly batch: string
  readonly allow_private: boolean
}

export const NO_WEBHOOK: WebhookText = {
  name: '',
  to: '',
  types: '',
  destinations: '',
  senders: '',
  format: 'deferd',
  batch: '1',
  allow_private: false,
}

const webhookFields = (given: WebhookText): readonly FormField[] => [
  field({ name: 'name', label: 'Name', value: given.name, example: 'app', isRequired: true }),
  field({ name: 'to', label: 'To (URL)', value: given.to, example: 'https://app.example.com/hook', isRequired: true }),
  field({ name: 'types', label: 'Types (empty for all)', value: given.types, example: 'recipient.bounced, message.*' }),
  field({ name: 'destinations', label: 'Destinations (empty for all)', value: given.destinations, example: '*.example.com' }),
  field({ name: 'senders', label: 'Senders (empty for all)', value: given.senders, example: '*@example.com' }),
  choice('Format', 'format', given.format, [
    { value: 'deferd', text: 'deferd' },
    { value: 'cloudevents', text: 'CloudEvents' },
  ]),
  field({ name: 'batch', label: 'Events in one request, at most', value: given.batch, kind: 'number' }),
  checkBox('Permit private addresses, and http://', 'allow_private', given.allow_private),
]

/** The question for a new webhook. `problem` is the mistake in the form that was sent; null for none. */
export const newWebhookScreen = (view: View, given: WebhookText, problem: FormProblem | null): Screen =>
  questionPanel({
    place: 'webhooks',
    question: 'Add a webhook',
    about: 'Events from now on are sent to the URL, signed with a secret that the next screen shows once.',
    action: linkTo(view, 'new-webhook'),
    button: 'Add the webhook',
    fields: webhookFields(given),
    problem,
    back: linkTo(view, 'webhooks'),
    words: ['webhook', 'add', 'NAME', 'URL'],
    call: { method: 'POST', path: 'api/v1/subscriptions', body: { name: 'NAME', to: 'URL', secret: 'whsec_…' } },
  })

const VERIFIES = 'The program verifies the field webhook-signature with it.'

interface ShownSecret {
  readonly name: string
  readonly title: string
  readonly secret: string
  readonly about: string
}

/** The secret of a webhook that was added, or that got a new one. */
export const webhookSecretScreen = (view: View, { name, title, secret, about }: ShownSecret): Screen =>
  secretPanel({
    place: 'webhooks',
    title,
    what: 'secret',
    secret,
    about: `${VERIFIES} ${about}`,
    next: [subscriptionLink(view, name), name],
  })

const callTo = (name: string, rest: string): string => `api/v1/subscriptions/${encodeURIComponent(name)}${rest}`

export const newSecretScreen = (
  view: View,
  { name, overlap, problem }: { name: string; overlap: string; problem: FormProblem | null },
): Screen =>
  questionPanel({
    place: 'webhooks',
    question: `Give ${name} a new secret?`,
    about: 'The next screen shows it once. The old secret signs beside it for some time, so that no event is refused meanwhile.',
    action: linkTo(view, `${subscriptionPlace(name)}/secret`),
    button: 'Make a new secret',
    fields: [field({ name: 'overlap', label: 'The old one signs for', value: overlap, example: '1d', isRequired: true })],
    problem,
    back: subscriptionLink(view, name),
    words: ['webhook', 'secret', name],
    call: { method: 'POST', path: callTo(name, '/secret'), body: { secret: 'whsec_…', overlap: 86_400 } },
  })

export const webhookRemovalScreen = (view: View, one: SubscriptionJson): Screen => {
  const { name, to, parked } = one
  return questionPanel({
    place: 'webhooks',
    question: `Remove ${name}?`,
    about: 'No further event is sent to it. What waits for it, and what it refused, is not sent any more.',
    action: linkTo(view, `${subscriptionPlace(name)}/remove`),
    button: `Remove ${name}`,
    facts: facts([
      ['sent to', to, 'wide'],
      ['not sent yet', eventsBehind(one)],
      ['parked', plural(parked, 'event')],
      ['undo', html`<strong>not possible</strong>`],
    ]),
    back: subscriptionLink(view, name),
    words: ['webhook', 'remove', name],
    call: { method: 'DELETE', path: callTo(name, '') },
  })
}

const testCall = (name: string) => ({ method: 'POST', path: callTo(name, '/test') }) as const

export const webhookTestScreen = (view: View, { name, to }: Pick<SubscriptionJson, 'name' | 'to'>): Screen =>
  questionPanel({
    place: 'webhooks',
    question: `Send a test event to ${name}?`,
    about: html`One event of the type test is sent to <span class="reply">${to}</span>. The subscription stays as it is.`,
    action: linkTo(view, `${subscriptionPlace(name)}/test`),
    button: 'Send a test event',
    back: subscriptionLink(view, name),
    words: ['webhook', 'test', name],
    call: testCall(name),
  })

/** The answer of a target to a test event. The target is shown as the subscription is to the requester. */
export const testAnswerScreen = (
  view: View,
  { name, to }: Pick<SubscriptionJson, 'name' | 'to'>,
  { taken, answer, time, took }: TestAnswerJson,
): Screen => {
  const title = `${name} ${taken ? 'took' : 'did not take'} the test event`
  return {
    title,
    place: 'webhooks',
    main: html`<div class="panel">
      <h1>${shapeOf(taken ? 'done' : 'failed')} ${title}</h1>
      ${facts([
        ['answer', html`<span class="reply">${answer}</span>`, 'wide'],
        ['after', tookText(took)],
        ['sent', clockTime(view, time)],
        ['sent to', html`<span class="reply">${to}</span>`, 'wide'],
      ])}
      <form method="post" action="${linkTo(view, `${subscriptionPlace(name)}/test`)}">
        <p class="buttons">
          <button type="submit">Send another one</button> <a class="button" href="${subscriptionLink(view, name)}">${name}</a>
        </p>
      </form>
      ${asCommand(['webhook', 'test', name], testCall(name))}
    </div>`,
  }
}
