/** A range of times in a form of the page, in the zone that the page shows. */
import { formatInstant, isRange, parseInstant, parseNamedInstant } from '../../mail/message-times.ts'
import { MINUTE, type WallTime } from '../../system/clock.ts'
import type { View } from './view.ts'

/** The texts of the fields; empty for no limit. */
export interface RangeText {
  readonly after: string
  readonly before: string
}

/** The instants of a range: `after` is in it, `before` is not. */
export interface TimeRange {
  readonly after: WallTime | undefined
  readonly before: WallTime | undefined
}

export const ANY_TIME: TimeRange = { after: undefined, before: undefined }

/** The text of an instant for a command; empty for none. */
export const instantText = (at: WallTime | undefined): string => (at === undefined ? '' : formatInstant(at))

const LOCAL = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?$/

/**
 * The instant of a local time such as `2026-11-28T14:00`; a time that a change of the clocks repeats is the later one. Also reads the
 * instants of the API. Undefined for other text.
 */
export function instantIn(text: string, { clock }: Pick<View, 'clock'>): WallTime | undefined {
  const local = LOCAL.exec(text)
  if (local === null) return parseNamedInstant(text)
  const [, date = '', minute = '', second = ':00'] = local
  const asUtc = parseInstant(`${date}T${minute}${second}Z`)
  if (asUtc === undefined) return undefined
  const near = asUtc - clock.zone(asUtc).offset * MINUTE
  return asUtc - clock.zone(near).offset * MINUTE
}

/** The range of two fields, or a sentence for the operator about an invalid one. */
export function timeRangeIn(texts: RangeText, view: Pick<View, 'clock'>): TimeRange | string {
  const [after, before] = [texts.after, texts.before].map((text) => (text === '' ? undefined : instantIn(text, view)))
  if ((texts.after !== '' && after === undefined) || (texts.before !== '' && before === undefined))
    return 'From, to: expected a time such as 2026-11-28 14:00.'
  if (!isRange(after, before)) return 'From, to: expected a begin before the end.'
  return { after, before }
}
