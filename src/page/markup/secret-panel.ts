/**
 * A new secret, in the answer to the form that made it: it is in no URL and no cookie, and cannot be shown again. A script removes it when
 * the browser leaves the screen, so that a browser that keeps the screen for its button “Back” does not keep the secret.
 */
import { html, type Part } from '../../presentation/html.ts'
import type { Screen } from './frame.ts'
import { shapeOf } from './marks.ts'
import type { Place } from './navigation.ts'

interface NewSecret {
  readonly place: Place
  /** Sentence that states what was made. */
  readonly title: string
  /** Name of the secret within a sentence: `token`. */
  readonly what: string
  readonly secret: string
  readonly about: Part
  /** URL of the screen that comes next, and its name. */
  readonly next: readonly [href: string, name: string]
}

export const secretPanel = ({ place, title, what, secret, about, next: [href, name] }: NewSecret): Screen => ({
  title,
  place,
  main: html`<div class="panel">
    <h1>${shapeOf('done')} ${title}</h1>
    <p class="secret" data-secret="The ${what} was shown once."><code data-copy="the ${what}">${secret}</code></p>
    <p><strong>The ${what} is shown this once.</strong> ${about}</p>
    <p class="buttons"><a class="button" href="${href}">${name}</a></p>
  </div>`,
})
