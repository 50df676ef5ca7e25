/** Parts of a screen while much of the queue is counted. The screen is loaded again when the counts are known. */
import { heading, type Screen } from '../markup/frame.ts'
import type { Place } from '../markup/navigation.ts'
import { html, type Html } from '../../presentation/html.ts'
import { ended } from '../../presentation/text.ts'
import type { View } from '../markup/view.ts'

/** Makes a screen load itself again. The request for the JSON at `path` is answered when the counts are known. */
export const untilCounted = (path: string) => ({ live: { path }, refresh: 2 }) as const satisfies Partial<Screen>

/** Why there are no figures of the queue. While the relay cannot commit, they cannot be read either. */
export const figuresMissing = ({ health }: Pick<View, 'health'>): string =>
  health?.state === 'failing'
    ? `These figures cannot be read: ${ended(health.text)} They follow by themselves.`
    : 'The queue is being counted, as after each start, or a node takes long to answer; these figures follow by themselves. Mail is accepted and delivered meanwhile.'

export const countingNotice = (text: string): Html => html`<p class="news" role="status" data-state="counting">${text}</p>`

export const countingScreen = (view: View, place: Place, title: string): Screen => ({
  title,
  place,
  ...untilCounted('api/v1/now'),
  main: html`${heading(title)} ${countingNotice(figuresMissing(view))}`,
})
