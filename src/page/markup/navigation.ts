/** The navigation: the screens in two groups. Neither group needs scripts. */
import { html, type Html } from '../../presentation/html.ts'
import { linkTo } from './links.ts'
import type { View } from './view.ts'

/** Path below the root, name, the key that leads there after `g`, and the role of those who see it when others do not. */
type Entry = readonly [path: string, name: string, key: string, role?: 'admin']

/** Screens about mail: waiting mail, its causes, and mail that has left. */
export const QUEUE_PLACES = [
  ['', 'Now', 'n'],
  ['trends', 'Trends', 't'],
  ['destinations', 'Destinations', 'd'],
  ['providers', 'Providers', 'v'],
  ['causes', 'Causes', 'c'],
  ['messages', 'Messages', 'm'],
  ['history', 'History', 'h'],
] as const satisfies readonly Entry[]

/** The relay and those who change it. */
export const SYSTEM_PLACES = [
  ['planner', 'Planner', 'p'],
  ['deliverability', 'Deliverability', 'y'],
  ['events', 'Events', 'e'],
  ['webhooks', 'Webhooks', 'w'],
  ['suppressions', 'Suppression', 'u'],
  ['quotas', 'Quotas', 'q'],
  ['shares', 'Shares', 'r'],
  ['audit', 'Audit', 'a'],
  ['log', 'Log', 'l'],
  ['nodes', 'Nodes', 'o'],
  ['settings', 'Settings', 's'],
  ['tokens', 'Tokens', 'k', 'admin'],
] as const satisfies readonly Entry[]

/** First segment of a screen's path. */
export type Place = (typeof QUEUE_PLACES | typeof SYSTEM_PLACES)[number][0] | 'operations'

const linksOf = (view: View, places: readonly Entry[], place: Place | null): readonly Html[] =>
  places
    .filter(([, , , role]) => role === undefined || view.requester.mayAdminister)
    .map(
      ([path, name, key]) =>
        html`<li><a href="${linkTo(view, path)}" data-key="${key}" ${path === place ? html` aria-current="page"` : ''}>${name}</a></li>`,
    )

/** On a phone both groups open from one button, otherwise the second one from a button of its own. */
export function navigation(view: View, place: Place | null): Html {
  const current = SYSTEM_PLACES.find(([path]) => path === place)
  return html`<button type="button" class="menu" popovertarget="screens">Menu</button>
    <nav aria-label="Screens" id="screens" popover>
      <p id="queue-screens" class="group">Queue</p>
      <ul aria-labelledby="queue-screens">
        ${linksOf(view, QUEUE_PLACES, place)}
      </ul>
      <p id="system-group" class="group">System</p>
      <button type="button" ${current === undefined ? null : html` class="current"`} popovertarget="system-screens">
        System${current === undefined ? null : `: ${current[1]}`} ▾
      </button>
      <ul aria-labelledby="system-group" id="system-screens" popover>
        ${linksOf(view, SYSTEM_PLACES, place)}
      </ul>
    </nav>`
}
