/** A request that was refused or failed, as a sentence, with the way back. */
import type { Screen } from '../markup/frame.ts'
import { html } from '../../presentation/html.ts'
import { linkTo } from '../markup/links.ts'
import { QUEUE_PLACES, SYSTEM_PLACES } from '../markup/navigation.ts'
import { shapeOf } from '../markup/marks.ts'
import { asSentence, ended } from '../../presentation/text.ts'
import type { View } from '../markup/view.ts'

interface FailureFacts {
  readonly title: string
  readonly detail: string
  /** Link to the same screen, after a failure that it may not have later; null for others. */
  readonly again: string | null
}

export const failureScreen = (view: View, { title, detail, again }: FailureFacts): Screen => ({
  title,
  place: null,
  main: html`<div class="panel">
    <h1>${shapeOf('warning')} ${title}</h1>
    <p>${ended(asSentence(detail))}</p>
    <p>
      ${again !== null ? html`<a href="${again}">Try again</a>` : html`<a href="${linkTo(view, '')}">Now</a> shows the state of the queue.`}
    </p>
  </div>`,
})

interface RefusedQuery {
  readonly parameter: string
  readonly problem: string
}

/** A query with a parameter that the screen does not have, with the way to the screen without it. Nothing was looked for. */
export function refusedQueryScreen(view: View, { parameter, problem }: RefusedQuery): Screen {
  const [path = '', query = ''] = view.here.split('?', 2)
  const kept = new URLSearchParams(query)
  kept.delete(parameter)
  const [section] = path.split('/', 1)
  return {
    title: 'Unknown parameter',
    place: [...QUEUE_PLACES, ...SYSTEM_PLACES].find(([place]) => place === section)?.[0] ?? null,
    main: html`<div class="panel">
      <h1>Nothing was looked for</h1>
      <p class="problem" role="alert">${shapeOf('warning')} ${problem}</p>
      <p><a href="${view.root}${path}${kept.size === 0 ? '' : `?${kept.toString()}`}">Show the screen without it</a></p>
    </div>`,
  }
}
