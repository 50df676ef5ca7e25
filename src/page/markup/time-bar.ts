/** The bar with the time of a relay in virtual time, and the buttons that advance it. */
import { html, type Html } from '../../presentation/html.ts'
import { isoTime, localTime } from '../../presentation/text.ts'
import type { View } from './view.ts'

/** Path below the root to which the forms lead. */
export const VIRTUAL_TIME = 'virtual-time'

/** Values of the buttons, with their texts. */
export const ADVANCES = { '1m': '+1 min', '1h': '+1 h', '1d': '+1 d', settle: 'Settle', crash: 'Crash' } as const

const speedText = (speed: number): string => (speed === 0 ? 'stands' : speed === 1 ? 'real time' : `${speed} times real time`)

/** Null for a relay in real time. */
export const timeBar = (view: View): Html | null =>
  view.virtualTime === undefined
    ? null
    : html`<section class="time-bar" aria-label="Time of the world">
        <p>
          <time datetime="${isoTime(view.now)}">${localTime(view.now, view.clock)}</time>
          <span class="faint">${speedText(view.virtualTime.speed)}</span>
        </p>
        ${view.requester.mayOperate ? forms(view, view.virtualTime.speed) : null}
      </section>`

const forms = ({ root }: View, speed: number): Html =>
  html`<form method="post" action="${root}${VIRTUAL_TIME}">
      ${Object.entries(ADVANCES).map(([value, text]) => html`<button name="do" value="${value}">${text}</button>`)}
    </form>
    <form method="post" action="${root}${VIRTUAL_TIME}">
      <label for="speed">Speed</label>
      <input id="speed" name="speed" type="number" min="0" max="1000000" step="any" value="${speed}" required />
      <button>Set</button>
    </form>`
