/** Texts about the mail that a flush passes over, for commands and the page. */
import { PASSED_REASONS, type PassedOver, type PassedReason } from '../queue/operation-request.ts'
import { grouped } from './text.ts'

const TEXTS: Readonly<Record<PassedReason, { readonly one: string; readonly many: string }>> = {
  active: { one: 'is in delivery or claimed for it', many: 'are in delivery or claimed for it' },
  due: { one: 'was due already', many: 'were due already' },
  hold: { one: 'is on hold', many: 'are on hold' },
  scheduled: { one: 'is scheduled and was passed over', many: 'are scheduled and were passed over' },
}

/** `2,488 are in delivery`, `1 is on hold`: a text for each reason with messages. */
export const passedOverTexts = (counts: PassedOver): readonly string[] =>
  PASSED_REASONS.flatMap((reason) => {
    const { [reason]: count = 0 } = counts
    return count === 0 ? [] : [`${grouped(count)} ${count === 1 ? TEXTS[reason].one : TEXTS[reason].many}`]
  })
