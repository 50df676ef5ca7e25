/** A request that was refused or failed, as a sentence, with the way back. */
import type { Screen } from '../markup/frame.ts'
import { html } from '../../presentation/html.ts'
import { linkTo } from '../markup/links.ts'
import { shapeOf } from '../markup/marks.ts'
import type { View } from '../markup/view.ts'

interface FailureFacts {
  readonly title: string
  readonly detail: string
}

export const failureScreen = (view: View, { title, detail }: FailureFacts): Screen => ({
  title,
  place: null,
  main: html`<div class="panel">
    <h1>${shapeOf('warning')} ${title}</h1>
    <p>${detail.charAt(0).toUpperCase()}${detail.slice(1)}${/[.!?]$/.test(detail) ? '' : '.'}</p>
    <p><a href="${linkTo(view, '')}">Now</a> shows the state of the queue.</p>
  </div>`,
})
