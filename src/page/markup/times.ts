/** Times, durations, counts and sizes as markup. The browser keeps relative times current; without scripts they are those of the request. */
import { grouped, instantOf, isoTime, localTime, plural, relative, span, zoneText } from '../../presentation/text.ts'
import { html, type Html } from '../../presentation/html.ts'
import type { WallTime } from '../../system/clock.ts'
import type { View } from './view.ts'

/** `2026-11-20 10:02:07 UTC+1` */
export const zonedTime = ({ clock }: Pick<View, 'clock'>, at: WallTime): string =>
  `${localTime(at, clock)} ${zoneText(clock.zone(at).offset)}`

const element = (view: View, seconds: number, text: string, form: string): Html => {
  const at = instantOf(seconds)
  return html`<time datetime="${isoTime(at)}" title="${zonedTime(view, at)}" data-relative="${form}">${text}</time>`
}

/** `in 4m`, `3h 5m ago`, with the local time as its title. */
export const distance = (view: View, seconds: number): Html => element(view, seconds, relative(instantOf(seconds), view.now), 'distance')

/** The distance of a past event, `3h 5m ago`. One that was recorded after the facts of the screen is now. */
export const ago = (view: View, seconds: number): Html => distance(view, Math.min(seconds, Math.floor(view.now / 1_000)))

/** `3h 5m`: the time since an instant. */
export const age = (view: View, seconds: number): Html => element(view, seconds, span(Math.max(0, view.now - instantOf(seconds))), 'age')

/** `in 4m`, or `now` for a time that has passed. */
export const due = (view: View, seconds: number): Html =>
  element(view, seconds, instantOf(seconds) <= view.now ? 'now' : relative(instantOf(seconds), view.now), 'due')

/** `probe in 4m`, or `probe due` for one that has not begun. */
export const probeDue = (view: View, seconds: number): Html =>
  instantOf(seconds) <= view.now ? html`probe due` : html`probe ${due(view, seconds)}`

/** The time and the zone of a request. */
export type ZonedNow = Pick<View, 'now' | 'clock'>

/** `10:02` today, otherwise `2026-11-20 10:02`, within a sentence. */
export function clockText({ now, clock }: ZonedNow, seconds: number): string {
  const whole = localTime(instantOf(seconds), clock)
  return whole.slice(whole.slice(0, 10) === localTime(now, clock).slice(0, 10) ? 11 : 0, 16)
}

/** `10:02:07` today, otherwise `2026-11-20 10:02`: a local time. */
export function clockTime(view: View, seconds: number): Html {
  const at = instantOf(seconds)
  const whole = localTime(at, view.clock)
  const isToday = whole.slice(0, 10) === localTime(view.now, view.clock).slice(0, 10)
  return html`<time datetime="${isoTime(at)}" title="${zonedTime(view, at)}">${isToday ? whole.slice(11) : whole.slice(0, 16)}</time>`
}

export const count = (value: number): string => grouped(value)

/** `100,000+` for a count that ended at a limit. */
export const countUpTo = (value: number, isAtLeast: boolean): string => `${grouped(value)}${isAtLeast ? '+' : ''}`

export const messages = (value: number): string => plural(value, 'message')

/** `3 recipients wait` */
export const waits = (recipients: number): string => `${plural(recipients, 'recipient')} ${recipients === 1 ? 'waits' : 'wait'}`

export { byteSize, instantOf, plural, rate, span, tookText } from '../../presentation/text.ts'
