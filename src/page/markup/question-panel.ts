/** The question before a change that has no dry run: a panel with the consequence, the form, and the same change as a command. */
import { html, type Part } from '../../presentation/html.ts'
import { asCommand, type ApiCall } from './command-lines.ts'
import { problemText, type FormField, type FormProblem } from './fields.ts'
import { shapeOf } from './marks.ts'
import type { Screen } from './frame.ts'
import type { Place } from './navigation.ts'

interface Question {
  readonly place: Place
  readonly question: string
  readonly about: Part
  /** URL to which the form is sent. */
  readonly action: string
  /** Text of the button: a verb with its object. */
  readonly button: string
  /** Subject of the change, with the values that are sent beside the fields. */
  readonly facts?: Part
  readonly fields?: readonly FormField[]
  /** Mistake in the form that was sent; null for none. */
  readonly problem?: FormProblem | null
  /** URL of the screen below. */
  readonly back: string
  readonly words: readonly string[]
  readonly call: ApiCall
}

export const questionPanel = (asked: Question): Screen => {
  const { place, question, about, action, button, facts = null, fields = [], problem = null, back, words, call } = asked
  return {
    title: question,
    place,
    main: html`<div class="panel" data-panel>
      <h1>${question}</h1>
      <p>${about}</p>
      ${problem === null ? null : html`<p class="problem" role="alert">${shapeOf('warning')} ${problemText(fields, problem)}</p>`}
      <form method="post" action="${action}">
        ${facts} ${fields}
        <p class="buttons">
          <button type="submit" class="primary">${button}</button> <a class="button" href="${back}" data-close>Cancel</a>
        </p>
      </form>
      ${asCommand(words, call)}
    </div>`,
  }
}
