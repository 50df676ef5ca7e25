/** The form that chooses the time zone of the page. */
import { zoneText } from '../../../presentation/text.ts'
import { html } from '../../../presentation/html.ts'
import type { Clock } from '../../../system/clock.ts'
import { choice, hidden } from '../../markup/fields.ts'
import type { Screen } from '../../markup/frame.ts'
import { linkTo } from '../../markup/links.ts'
import type { View } from '../../markup/view.ts'

interface ZoneFacts {
  /** Null for the zone of the server. */
  readonly chosen: string | null
  readonly server: Pick<Clock, 'zone'>
  readonly names: readonly string[]
  /** Path below the root to which the form leads back. */
  readonly back: string
}

export const zoneScreen = (view: View, { chosen, server, names, back }: ZoneFacts): Screen => ({
  title: 'Time zone',
  place: null,
  main: html`<div class="panel" data-panel>
    <h1>Time zone</h1>
    <p>All times of the page, and its charts, are of this zone. This browser keeps it for a year; the log and the API are not changed.</p>
    <form method="post" action="${linkTo(view, 'zone')}">
      ${hidden({ back })}
      ${choice('Zone', 'zone', chosen ?? '', [
        { value: '', text: `of the server: ${zoneText(server.zone(view.now).offset)}` },
        ...names.map((name) => ({ value: name, text: name })),
      ])}
      <p class="buttons">
        <button type="submit" class="primary">Show times in it</button>
        <a class="button" href="${linkTo(view, back)}" data-close>Cancel</a>
      </p>
    </form>
  </div>`,
})
