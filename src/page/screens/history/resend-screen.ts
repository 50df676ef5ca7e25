/** The plan of a resend: the mail of the history that would be sent again, and what is left out. Nothing has changed yet. */
import type { ResendPlanJson } from '../../../resources/plans/resend-plan-json.ts'
import { html, joined, type Html } from '../../../presentation/html.ts'
import { facts } from '../../markup/html-table.ts'
import { breakable } from '../../markup/long-words.ts'
import { messageLink } from '../../markup/links.ts'
import { byteSize, count, messages, plural } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'
import type { PlanParts } from './plan-screen.ts'

const leftOut = ({ sent_before: before, without_content: without, requeued, suppressed }: ResendPlanJson): Html =>
  html`${facts([
    ['sent again before', before === 0 ? null : `${plural(before, 'failed recipient')}, left out`],
    [
      'content not kept',
      without === 0 ? null : `${plural(without, 'failed recipient')}, left out (returned_content_retention, or erased)`,
      'wide',
    ],
    [
      'requeued',
      requeued === 0 ? null : `${plural(requeued, 'failed recipient')}, left out: the content went on with the others of the message`,
      'wide',
    ],
    ['on the suppression list', suppressed.left_out === 0 ? null : `${plural(suppressed.left_out, 'failed recipient')}, left out`],
    [
      'on the suppression list',
      suppressed.sent === 0 ? null : `${plural(suppressed.sent, 'recipient')}, sent to all the same (suppression = warn)`,
    ],
  ])}
  ${
    suppressed.examples.length === 0
      ? null
      : html`<ul class="examples">
          ${suppressed.examples.map(({ recipient, text }) => html`<li>${breakable(recipient)}: ${breakable(text)}</li>`)}
        </ul>`
  }`

const planFacts = (view: View, { recipients, bytes, destinations, examples }: ResendPlanJson): Html =>
  html`${facts([
      ['failed recipients', count(recipients)],
      ['size', byteSize(bytes)],
      ['destinations', joined(destinations.map((one) => html`${breakable(one.destination)} (${count(one.recipients)})`)), 'wide'],
    ])}
    <ul class="examples">
      ${examples.map(
        (one) =>
          html`<li>
            <a href="${messageLink(view, one.queue_id)}">${one.queue_id}</a> to
            ${joined(one.recipients.map(({ address }) => breakable(address)))}
          </li>`,
      )}
    </ul>`

export const resendParts = (view: View, plan: ResendPlanJson): PlanParts =>
  plan.messages === 0
    ? {
        title: 'Send again: no message',
        about: html`<p>No selected recipient can be sent again.</p>
          ${leftOut(plan)}`,
        button: null,
        kind: 'primary',
      }
    : {
        title: `Send ${messages(plan.messages)} again?`,
        about: html`<p>
            Each message goes to the recipients that it did not reach, once each, with a new queue id. Delivered recipients get nothing.
          </p>
          ${planFacts(view, plan)} ${leftOut(plan)}`,
        button: 'Send again',
        kind: 'primary',
      }
